"""The sharing graph: one box a row, one curve a shared name, one box a tensor in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import plotly.graph_objects as go
import pytest

from inspector.analyses.sharing.figures import sharing_graph
from inspector.analyses.sharing.figures_words import group_letter, sharing_subtitle
from inspector.analyses.sharing.result import SharedGroup, Verdict
from inspector.plotting.theme import DARK, LIGHT
from tests.analyses.sharing.sharing_frames import folded, group, sharing_of

VERDICTS = ("tied", "equal copies", "diverged", "declared only", "alias only", "not compared")
T5 = [
    "shared.weight", "encoder.embed_tokens.weight",
    *(f"encoder.block.{number}.wi.weight" for number in range(6)),
    "decoder.embed_tokens.weight", "lm_head.weight",
]  # fmt: skip
T5_GROUPS = [group(*sorted(name for name in T5 if "block" not in name))]


def draw(names: Sequence[str], groups: Sequence[SharedGroup] = (), title: str = "t", **options: Any) -> go.Figure:
    sizes = options.pop("sizes", None)
    rows, frame = folded(names, groups, sizes=sizes)
    return sharing_graph(rows, groups, frame, title=title, **options)


def traces(figure: go.Figure) -> list[Any]:
    return list(figure["data"])


def trace(figure: go.Figure, name: str) -> Any:
    return next(t for t in traces(figure) if t.name == name)


def curves(figure: go.Figure) -> list[Any]:
    return [t for t in traces(figure) if t.name.startswith("row ")]


def notes(figure: go.Figure) -> list[str]:
    return [a["text"] for a in figure.to_dict()["layout"]["annotations"]]


def test_each_row_has_a_box_that_knows_its_index() -> None:
    boxes = trace(draw(T5, T5_GROUPS), "names")
    assert boxes["customdata"] == (0, 1, 2, 3, 4)
    assert list(boxes["y"]) == sorted(boxes["y"])  # the model's order, downward
    shared = LIGHT.groups[0]
    assert boxes["marker"]["line"]["color"] == (shared, shared, LIGHT.edge, shared, shared)


def test_one_curve_for_each_shared_name_from_its_row_to_the_tensor() -> None:
    figure = draw(T5, T5_GROUPS)
    boxes, storage = trace(figure, "names"), trace(figure, "storage")
    assert [curve.name for curve in curves(figure)] == ["row 0", "row 1", "row 3", "row 4"]
    assert len(storage["y"]) == 1
    for curve in curves(figure):
        row = int(curve.name.split()[1])
        assert curve["y"][0] == pytest.approx(boxes["y"][row])
        assert curve["y"][-1] == pytest.approx(storage["y"][0])
        assert curve["x"][0] == pytest.approx(boxes["base"][row] + boxes["x"][row])
        assert curve["x"][-1] == pytest.approx(storage["base"][0])
        assert curve["line"]["color"] == LIGHT.groups[0]
    middle = sum(boxes["y"][row] for row in (0, 1, 3, 4)) / 4
    assert storage["y"][0] == pytest.approx(middle)
    assert storage["customdata"] == (0,)


def test_the_tensor_says_what_is_stored_and_saved() -> None:
    figure = draw(T5, T5_GROUPS)
    assert "<b>one tensor, 4 names</b><br>500 × 500 · 250.0K<br>1.0 MB · saves 3.0 MB" in notes(figure)
    hover = trace(figure, "storage")["hovertext"][0]
    assert "Because of &lt;this&gt;." in hover
    assert all(name in hover for name in T5_GROUPS[0].names)


def test_views_of_a_block_are_not_called_one_tensor() -> None:
    whole, part = group("a", "b").members
    views = replace(group("a", "b"), members=(whole, replace(part, shape=(1, 500))))
    assert any(text.startswith("<b>one block, 2 names") for text in notes(draw(["a", "b"], [views])))


@pytest.mark.parametrize(
    ("verdict", "sign", "words"),
    [
        ("equal copies", "=", "tying saves 1.0 MB"),
        ("diverged", "≠", "no tie is declared"),
        ("declared only", "≠", "a tie is declared"),
        ("alias only", "|", "no tie is declared"),
        ("not compared", "|", "no tie is declared"),
    ],
)
def test_what_is_not_one_tensor_is_not_drawn_as_one(verdict: Verdict, sign: str, words: str) -> None:
    figure = draw(["in.weight", "out.weight"], [group("in.weight", "out.weight", verdict=verdict)])
    storage = trace(figure, "storage")
    assert len(storage["y"]) == 2
    assert storage["customdata"] == (0, 1)
    ends = [curve["y"][-1] for curve in curves(figure)]
    assert ends == pytest.approx(list(storage["y"]))
    assert [text for text in notes(figure) if text in {f"<b>{s}</b>" for s in "=≠|"}] == [f"<b>{sign}</b>"]
    assert f"<b>{verdict}</b>" in notes(figure)
    assert words in notes(figure)
    assert notes(figure).count("500 × 500 · 1.0 MB") == 2
    assert not any("one tensor" in text for text in notes(figure))


def test_names_that_share_within_a_broken_group_end_in_one_box() -> None:
    three = group("a", "b", "c", verdict="declared only")
    a, b, c = three.members
    partly = replace(three, members=(a, replace(b, storage=a.storage), c))
    figure = draw(["a", "b", "c"], [partly])
    ends = [curve["y"][-1] for curve in curves(figure)]
    assert len(trace(figure, "storage")["y"]) == 2
    assert ends[0] == ends[1] != ends[2]


def test_many_copies_are_counted_and_not_all_drawn() -> None:
    names = [f"copy{chr(97 + number)}.weight" for number in range(20)]
    figure = draw(names, [group(*names, verdict="equal copies")])
    assert len(trace(figure, "storage")["y"]) == 4
    assert "… 17 more tensors" in notes(figure)
    assert len(curves(figure)) == 20


def test_folded_groups_are_one_box_with_their_sums() -> None:
    left, right = ([f"{side}.{n}.w.weight" for n in range(30)] for side in ("enc", "dec"))
    groups = [group(*sorted(pair)) for pair in zip(left, right, strict=True)]
    figure = draw([*left, *right], groups)
    assert len(curves(figure)) == 2
    assert "<b>30 tensors × 2 names</b><br>7.5M<br>30.0 MB · saves 30.0 MB" in notes(figure)
    assert "29 more groups" in trace(figure, "storage")["hovertext"][0]


def test_size_bars_are_proportional_to_bytes() -> None:
    bars = trace(draw(T5, T5_GROUPS), "size")
    assert list(bars["x"]) == pytest.approx([10, 10, 60, 10, 10])  # six layers of one size


def test_verdicts_differ_in_line_shape_and_letter() -> None:
    pairs = [(f"a{letter}.w", f"b{letter}.w") for letter in "uvwxyz"]
    groups = [group(*pair, verdict=v) for pair, v in zip(pairs, VERDICTS, strict=True)]
    figure = draw([name for pair in pairs for name in pair], groups)
    assert len({curve["line"]["dash"] for curve in curves(figure)}) == len(VERDICTS)
    assert len(set(trace(figure, "ports")["marker"]["symbol"])) == len(VERDICTS)
    assert trace(figure, "ports")["text"] == tuple("ABBCCDDEEFF")  # one tensor, else one a name
    assert trace(figure, "ends")["text"] == tuple("AABBCCDDEEFF")


def test_boxes_never_overlap_and_stay_on_the_figure() -> None:
    # Ties side by side want the same height; their boxes must be pushed apart.
    names = [f"{side}{letter}.w" for side in "ab" for letter in "uvwxyz"]
    groups = [
        group(f"a{letter}.w", f"b{letter}.w", verdict=verdict)
        for letter, verdict in zip("uvwxyz", VERDICTS, strict=True)
    ]
    figure = draw(names, groups)
    storage = trace(figure, "storage")
    spans = sorted((y - width / 2, y + width / 2) for y, width in zip(storage["y"], storage["width"], strict=True))
    assert all(below[0] - above[1] > 10 for above, below in pairwise(spans))
    low, high = sorted(figure.to_dict()["layout"]["yaxis"]["range"])
    assert spans[0][0] >= low
    assert spans[-1][1] <= high


def test_on_a_phone_each_tensor_is_below_its_last_name_and_no_line_lies_over_another() -> None:
    names = [f"{side}{letter}.w" for side in "ab" for letter in "uvwxyz"]
    groups = [
        group(f"a{letter}.w", f"b{letter}.w", verdict=verdict)
        for letter, verdict in zip("uvwxyz", VERDICTS, strict=True)
    ]
    figure = draw(names, groups, narrow=True)
    boxes, storage, ports = trace(figure, "names"), trace(figure, "storage"), trace(figure, "ports")
    spans = sorted(
        (y - width / 2, y + width / 2)
        for each in (boxes, storage)
        for y, width in zip(each["y"], each["width"], strict=True)
    )
    assert all(below[0] - above[1] > 3 for above, below in pairwise(spans))
    assert spans[-1][1] <= max(figure.to_dict()["layout"]["yaxis"]["range"])
    assert list(ports["y"]) == list(storage["y"])
    for place, y in enumerate(storage["y"]):
        last = names.index(f"b{'uvwxyz'[(place + 1) // 2]}.w")  # the first group has one box, the others two
        assert boxes["y"][last] < y < [*boxes["y"], math.inf][last + 1]
    downward = {
        (max(curve["x"]), min(curve["y"]), max(curve["y"])) for curve in curves(figure) if len({*curve["y"]}) > 1
    }
    assert len(downward) == len(storage["y"])
    for one, other in combinations(downward, 2):
        assert one[0] != pytest.approx(other[0]) or one[2] < other[1] or other[2] < one[1]
    widest = figure.to_dict()["layout"]["meta"]["least"]
    assert max(lane for lane, *_ in downward) < widest < 360
    assert {curve["x"][0] for curve in curves(figure)} == {boxes["x"][0]}
    assert [curve["y"][0] for curve in curves(figure)] == list(boxes["y"])


def test_on_a_phone_a_name_has_a_line_of_its_own_and_what_is_stored_its_room() -> None:
    name = "bert.embeddings.position_embed.weight"
    figure = draw([name, "b.w"], narrow=True)
    assert {name, "500 × 500 · 250.0K"} <= {*notes(figure)}
    size = figure.to_dict()["layout"]
    nothing = next(each for each in size["annotations"] if "nothing is shared" in each["text"])
    assert max(trace(figure, "names")["y"]) + 40 < nothing["y"] < max(size["yaxis"]["range"]) - 20


def test_the_figure_grows_with_its_rows() -> None:
    few, many = (draw([f"{chr(97 + n)}x.w" for n in range(count)]).to_dict()["layout"]["height"] for count in (5, 25))
    assert many - few == 20 * 36


def test_long_names_are_whole_in_the_hover_text() -> None:
    name = "transformer.encoder.layers.0.attention.self.query_projection.weight"
    figure = draw([name])
    assert name not in notes(figure)
    assert name in trace(figure, "names")["hovertext"][0]


def test_hover_text_knows_dtype_place_and_file() -> None:
    rows, frame = folded(T5, T5_GROUPS)
    frame.loc[9, ["dtype", "file", "file_offset"]] = ["bfloat16", "", -1]
    hovers = trace(sharing_graph(rows, T5_GROUPS, frame, title="t"), "names")["hovertext"]
    assert "500 × 500 · float32" in hovers[0]
    assert "in memory: storage 0, offset 0 B, stride (500, 1)" in hovers[0]
    assert "in the file: model.safetensors, from byte 0" in hovers[0]
    assert "bfloat16" in hovers[4]
    assert "in the file: not under this name" in hovers[4]
    assert "6 names, each 500 × 500" in hovers[2]


def test_the_subtitle_counts_names_tensors_and_parameters() -> None:
    assert sharing_subtitle(sharing_of(T5, T5_GROUPS)) == (
        "10 parameter names → 7 tensors in memory · 1.8M unique of 2.5M named parameters"
    )
    copies = [group("a", "b", verdict="equal copies")]
    assert "2 parameter names → 2 tensors" in sharing_subtitle(sharing_of(["a", "b"], copies))


def test_nothing_shared_is_said() -> None:
    figure = draw(["a.w", "b.w"], theme=DARK)
    assert curves(figure) == []
    assert any("nothing is shared" in text for text in notes(figure))
    assert set(trace(figure, "names")["marker"]["line"]["color"]) == {DARK.edge}
    assert not any("nothing is shared" in text for text in notes(draw(T5, T5_GROUPS)))


def test_no_rows_at_all_still_make_a_figure() -> None:
    figure = draw([], title="empty checkpoint")
    assert "empty checkpoint" in figure.to_dict()["layout"]["title"]["text"]


def test_names_cannot_be_markup() -> None:
    names = ["<b>bold</b>.weight", "<img src=x>"]
    text = draw(names, [group(*names)], title="<i>").to_json() or ""
    assert "<img" not in text
    assert "<b>bold</b>.weight" not in text
    assert "<i>" not in text


def test_letters_go_on_after_z() -> None:
    assert [group_letter(n) for n in (0, 25, 26, 27, 52)] == ["A", "Z", "AA", "AB", "BA"]
