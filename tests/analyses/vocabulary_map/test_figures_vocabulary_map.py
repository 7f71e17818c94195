"""What is sent to the browser's vocabulary map, and what it sends back."""

from __future__ import annotations

import base64
import json
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inspector.analyses.embeddings.result import KINDS
from inspector.analyses.vocabulary_map import component
from inspector.plotting.theme import DARK, LIGHT, Theme, contrast, luminance

DTYPES = {"f4": "<f4", "i4": "<i4", "u1": "u1"}


def frame_of_points(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "token_id": [0, 5, 7, 9],
            "token": ["[PAD]", "cat", "</script>", "a\nb"],
            "x": np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32),
            "y": np.array([-1.0, -2.0, -3.0, -4.0], dtype=np.float32),
            "norm": np.array([0.1, 1.0, 1.1, 1.2], dtype=np.float32),
            "kind": ["padding", "word", "special", "word"],
            **columns,
        }
    )


def unpacked(packed: component.PackedPoints) -> dict[str, Any]:
    """Read the bytes by the format's description, as the browser does."""
    length = int.from_bytes(packed.data[:4], "little")
    head = json.loads(packed.data[4 : 4 + length])
    for name, kind, start, nbytes in head["arrays"]:
        part = packed.data[start : start + nbytes]
        head[name] = part.decode().split("\n") if kind == "text" else np.frombuffer(part, DTYPES[kind]).tolist()
    return head


# --- packing -------------------------------------------------------------------------------------


def test_points_come_in_drawing_order_with_padding_last() -> None:
    data = unpacked(component.pack(frame_of_points()))
    assert data["token_id"] == [5, 9, 7, 0]
    assert data["place"] == [1.5, -2.0, 3.5, -4.0, 2.5, -3.0, 0.5, -1.0]
    assert data["norm"] == pytest.approx([1.0, 1.2, 1.1, 0.1])
    assert data["kind"] == [0, 0, 1, 2]
    assert data["tokens"] == ["cat", "a\\x0ab", "</script>", "[PAD]"]
    assert data["kinds"] == [["word", 2], ["special", 1], ["padding", 1]]
    assert data["dimensions"] == 2


def test_what_else_is_known_of_each_point_goes_along() -> None:
    points = frame_of_points(
        z=[1.0, 2.0, 3.0, np.nan],
        trust=[0.0, 0.2, 0.4, 0.6],
        score=[np.nan, 0.5, np.nan, 0.7],
        flagged=[False, True, False, False],
    )
    data = unpacked(component.pack(points))
    assert data["dimensions"] == 3
    assert data["token_id"] == [5, 7, 0]  # 9 has no place in the third dimension
    assert data["place"] == [1.5, -2.0, 2.0, 2.5, -3.0, 3.0, 0.5, -1.0, 1.0]
    assert data["trust"] == pytest.approx([0.2, 0.4, 0.0])
    assert data["score"][0] == 0.5
    assert np.isnan(data["score"][1:]).all()
    assert data["flagged"] == [1, 0, 0]
    assert "stability" not in data


def test_points_without_a_place_are_left_out_and_counted() -> None:
    points = frame_of_points()
    points.loc[1, "x"] = np.nan
    points.loc[2, "y"] = np.inf
    data = unpacked(component.pack(points))
    assert data["token_id"] == [9, 0]
    assert data["left_out"] == 2


@pytest.mark.parametrize(("column", "value"), [("y", 0.0), ("token", "dog"), ("norm", 9.0), ("kind", "subword")])
def test_the_digest_names_the_content(column: str, value: Any) -> None:
    points = frame_of_points()
    first = component.pack(points)
    assert component.pack(points.copy()) == first
    assert unpacked(first)["digest"] == first.digest
    points.loc[3, column] = value
    assert component.pack(points).digest != first.digest


def test_many_points_stay_small() -> None:
    count = 250_000
    points = pd.DataFrame(
        {
            "token_id": np.arange(count, dtype=np.int32),
            "token": ["token"] * count,
            "x": np.zeros(count, dtype=np.float32),
            "y": np.zeros(count, dtype=np.float32),
            "norm": np.ones(count, dtype=np.float32),
            "kind": ["word"] * count,
        }
    )
    # two places, id and norm of four bytes, one byte of kind, and each token with a separator
    assert len(component.pack(points).data) < count * (4 * 4 + 1 + 6) + 2000


def test_no_points_are_a_map_too() -> None:
    data = unpacked(component.pack(frame_of_points().iloc[:0]))
    assert (data["token_id"], data["kinds"], data["left_out"]) == ([], [], 0)


# --- what comes back -----------------------------------------------------------------------------


def sent(*ids: int) -> str:
    return base64.b64encode(np.array(ids, dtype="<i4").tobytes()).decode()


def test_chosen_ids_come_back_sorted_and_only_those_that_there_are() -> None:
    assert component.unpack_ids(sent(9, 0, 9, 123, -4), frame_of_points()) == (0, 9)
    assert component.unpack_ids(sent(), frame_of_points()) == ()


@pytest.mark.parametrize("text", [None, 7, ["AAAA"], "no base64!", "AAA=", "\u00e9", sent(*range(50))])
def test_what_is_no_list_of_ids_chooses_nothing(text: object) -> None:
    assert component.unpack_ids(text, frame_of_points()) == ()


# --- state ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("color", sorted(component.COLORS))
def test_the_state_is_plain_json(color: str) -> None:
    data = component.state(
        "d", title="t\u202e", color=color, selected=5, found=np.array([7, 9]), neighbors=(9,),
        chosen=[0], hidden={"word"}, theme=DARK,
    )  # fmt: skip
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["found"], data["neighbors"], data["chosen"]) == ([7, 9], [9], [0])
    assert data["hidden"] == ["word"]
    assert data["theme"]["page"] == DARK.page
    assert "\u202e" not in data["title"]


def test_every_kind_has_a_mark_of_its_own() -> None:
    data = component.state("d", title="t")
    styles = data["styles"]
    assert tuple(styles) == KINDS
    shapes = [style["symbol"] for style in [*styles.values(), data["flag"]]]
    assert len(set(shapes)) == len(shapes)
    assert [name for name, style in styles.items() if style["labels"]] == ["special", "padding"]
    assert [name for name, style in styles.items() if style["ringed"]] == ["padding"]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_ramps_read_without_color_vision_and_stand_out_from_the_page(theme: Theme) -> None:
    ramp = component.RAMPS[theme.name]
    shades = [luminance(color) for color in ramp]
    steps = [b - a for a, b in pairwise(shades)]
    assert all(step < 0 for step in steps) or all(step > 0 for step in steps)
    assert min(contrast(color, theme.page) for color in ramp) >= 3
    assert contrast(component.state("d", title="t", theme=theme)["theme"]["none"], theme.page) >= 3


# --- finding -------------------------------------------------------------------------------------

TOKENS = ["[PAD]", "king", "##king", "␣king", "King", "Queen", "un", "##un", "unit", "under",
          ",", "␣ two", "*", "cafe.", "##", "␣"]  # fmt: skip


def vocabulary() -> pd.DataFrame:
    return pd.DataFrame({"token_id": range(len(TOKENS)), "token": TOKENS, "kind": "word", "norm": 1.0})


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("  , ", []),
        ("king", ["king", "##king", "␣king"]),
        ("queen", ["Queen"]),
        ("King", ["King"]),
        ("##king", ["##king"]),
        ("Ġking", ["␣king"]),
        ("▁king", ["␣king"]),
        ("queen,un", ["Queen", "un", "##un"]),
        ("queen un queen", ["Queen", "un", "##un"]),
        ("un*", ["un", "##un", "unit", "under"]),
        ("*IT", ["unit"]),
        ("id 8, id9", ["unit", "under"]),
        ("[PAD]", ["[PAD]"]),
        ('","', [","]),
        ('" two"', ["␣ two"]),
        ("*", ["*"]),
        ("cafe.", ["cafe."]),
        ("##", ["##"]),
        ("␣", ["␣"]),
    ],
)
def test_a_search_finds_every_form_of_each_word(text: str, tokens: list[str]) -> None:
    found = component.find_tokens(vocabulary(), text)
    assert found.tokens["token"].tolist() == tokens
    assert found.missing == ()


def test_a_search_names_what_it_did_not_find() -> None:
    found = component.find_tokens(vocabulary(), "king caf. prince id 99 x*y")
    assert found.tokens["token"].tolist() == ["king", "##king", "␣king"]
    assert found.missing == ("caf.", "prince", "id 99", "x*y")


# --- assets --------------------------------------------------------------------------------------


def test_the_assets_ask_no_host_and_build_no_markup_from_text() -> None:
    script = component.javascript().replace("http://www.w3.org/2000/svg", "")  # a name, no address
    for text in (script, component.html(), component.css()):
        assert not re.search(r"https?:|//[a-z0-9.-]+\.[a-z]{2,}/|@import|url\((?!#|data:)", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)
    assert script.count("export default") == 1


def test_every_script_is_part_of_the_module() -> None:
    assert {path.name for path in component.ASSETS.glob("*.js")} == set(component.SCRIPTS)
