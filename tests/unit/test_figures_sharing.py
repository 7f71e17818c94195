"""The sharing graph: one box a row, one curve a shared name, one node a stored tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from inspector.figures import DARK, LIGHT, sharing_graph
from inspector.figures.sharing import group_letter
from inspector.results import SharedGroup

VERDICTS = ("tied", "equal copies", "diverged", "declared only", "alias only")


def group(*names: str, verdict: str = "tied", nbytes: int = 1_000_000) -> SharedGroup:
    return SharedGroup(
        names=names,
        verdict=verdict,
        shape=(500, 500),
        nbytes=nbytes,
        declared=True,
        in_file=names[:1],
        in_memory=verdict == "tied",
        reason="Because of <this>.",
    )


def rows(*lines: tuple[str, int, int]) -> pd.DataFrame:
    """Make one row a (label, parameters, group) with four bytes a parameter."""
    return pd.DataFrame(
        [
            {
                "label": label,
                "tensors": 1 if of >= 0 else 16,
                "parameters": parameters,
                "nbytes": 4 * parameters,
                "shape": "500×500" if of >= 0 else "",
                "group": of,
            }
            for label, parameters, of in lines
        ],
        columns=["label", "tensors", "parameters", "nbytes", "shape", "group"],
    )


T5 = rows(
    ("shared.weight", 250_000, 0),
    ("encoder.embed_tokens.weight", 250_000, 0),
    ("encoder.block.[0–5]", 500_000, -1),
    ("decoder.embed_tokens.weight", 250_000, 0),
    ("lm_head.weight", 250_000, 0),
)
T5_GROUPS = [group(*sorted(T5["label"].drop(index=2)))]


def traces(figure: go.Figure) -> list[Any]:
    return list(figure["data"])


def trace(figure: go.Figure, name: str) -> Any:
    return next(t for t in traces(figure) if t.name == name)


def curves(figure: go.Figure) -> list[Any]:
    return [t for t in traces(figure) if t.name.startswith("row ")]


def notes(figure: go.Figure) -> list[str]:
    return [a["text"] for a in figure.to_dict()["layout"]["annotations"]]


def test_each_row_has_a_box_that_knows_its_index() -> None:
    boxes = trace(sharing_graph(T5, T5_GROUPS, title="t5"), "names")
    assert boxes["customdata"] == (0, 1, 2, 3, 4)
    assert list(boxes["y"]) == sorted(boxes["y"])  # execution order downward
    assert boxes["marker"]["line"]["color"] == (
        *[LIGHT.groups[0]] * 2, LIGHT.edge, *[LIGHT.groups[0]] * 2,
    )  # fmt: skip


def test_one_curve_for_each_shared_name_from_its_row_to_the_node() -> None:
    figure = sharing_graph(T5, T5_GROUPS, title="t5")
    boxes, node = trace(figure, "names"), trace(figure, "storage")
    assert [curve.name for curve in curves(figure)] == ["row 0", "row 1", "row 3", "row 4"]
    for curve in curves(figure):
        row = int(curve.name.split()[1])
        assert curve["y"][0] == pytest.approx(boxes["y"][row])
        assert curve["y"][-1] == pytest.approx(node["y"][0])
        assert curve["x"][-1] == pytest.approx(node["x"][0])
        assert curve["line"]["color"] == LIGHT.groups[0]
    assert node["y"][0] == pytest.approx(np.mean([boxes["y"][row] for row in (0, 1, 3, 4)]))
    assert node["customdata"] == (0,)


def test_the_node_says_what_is_stored_and_saved() -> None:
    figure = sharing_graph(T5, T5_GROUPS, title="t5")
    assert (
        "<b>one tensor, 4 names</b><br>500×500 · 250.0K<br>stored 1.0 MB<br>saves 3.0 MB"
        in notes(figure)
    )
    hover = trace(figure, "storage")["hovertext"][0]
    assert "Because of &lt;this&gt;." in hover
    assert all(name in hover for name in T5_GROUPS[0].names)


def test_size_bars_are_proportional_to_bytes() -> None:
    bars = trace(sharing_graph(T5, T5_GROUPS, title="t5"), "size")
    assert list(bars["x"]) == pytest.approx([29.0, 29.0, 58.0, 29.0, 29.0])


def test_verdicts_differ_in_line_shape_and_words() -> None:
    pairs = [(f"a{n}", f"b{n}") for n in range(5)]
    lines = [(name, 10, n) for n, pair in enumerate(pairs) for name in pair]
    groups = [group(*pair, verdict=v) for pair, v in zip(pairs, VERDICTS, strict=True)]
    figure = sharing_graph(rows(*lines), groups, title="t")
    assert len({curve["line"]["dash"] for curve in curves(figure)}) == 5
    assert len(set(trace(figure, "storage")["marker"]["symbol"])) == 5
    assert trace(figure, "storage")["text"] == ("A", "B", "C", "D", "E")
    assert trace(figure, "ends")["text"] == tuple("AABBCCDDEE")
    words = " ".join(notes(figure))
    for phrase in (
        "one tensor, 2 names",
        "2 equal copies",
        "tying saves 1.0 MB",
        "2 values diverged",
        "tie only declared",
        "alias in file only",
    ):
        assert phrase in words
    assert words.count("saves") == 2  # only a tie saves, and only copies could


def test_nodes_never_overlap_and_stay_on_the_figure() -> None:
    # Three ties side by side want the same height; the nodes must be pushed apart.
    lines = [(f"{side}{n}", 10, n) for side in "ab" for n in range(3)]
    groups = [group(f"a{n}", f"b{n}") for n in range(3)]
    figure = sharing_graph(rows(*lines), groups, title="t")
    heights = sorted(trace(figure, "storage")["y"])
    assert min(np.diff(heights)) >= 80
    low, high = sorted(figure.to_dict()["layout"]["yaxis"]["range"])
    assert heights[0] - 40 >= low
    assert heights[-1] + 40 <= high


def test_the_figure_grows_with_its_rows() -> None:
    few, many = (
        sharing_graph(rows(*[(f"n{n}", 1, -1) for n in range(count)]), [], title="t")
        for count in (10, 300)
    )
    assert many.to_dict()["layout"]["height"] - few.to_dict()["layout"]["height"] == 290 * 46


def test_long_names_keep_their_numbers_and_are_whole_in_the_hover_text() -> None:
    name = "transformer.encoder.layers.0.attention.self.query_projection.weight"
    figure = sharing_graph(rows((name, 1, -1)), [], title="t")
    assert "tra….enc….lay….0.att….self.que….weight" in notes(figure)
    assert name in trace(figure, "names")["hovertext"][0]


def test_hover_text_knows_dtype_and_file() -> None:
    tensors = pd.DataFrame(
        {
            "name": ["shared.weight", "lm_head.weight"],
            "dtype": ["bfloat16"] * 2,
            "file": ["model.safetensors", ""],
        }
    )
    hovers = trace(sharing_graph(T5, T5_GROUPS, title="t", tensors=tensors), "names")["hovertext"]
    assert "bfloat16 · in the file: model.safetensors" in hovers[0]
    assert "in the file: under another name" in hovers[4]
    assert "16 tensors" in hovers[2]


def test_nothing_shared_is_said() -> None:
    figure = sharing_graph(rows(("a", 1, -1), ("b", 2, -1)), [], title="t", theme=DARK)
    assert curves(figure) == []
    assert any("nothing is shared" in text for text in notes(figure))
    assert set(trace(figure, "names")["marker"]["line"]["color"]) == {DARK.edge}
    assert not any(
        "nothing is shared" in text for text in notes(sharing_graph(T5, T5_GROUPS, title="t"))
    )


def test_no_rows_at_all_still_make_a_figure() -> None:
    figure = sharing_graph(rows(), [], title="empty checkpoint")
    assert "empty checkpoint" in figure.to_dict()["layout"]["title"]["text"]


def test_names_cannot_be_markup() -> None:
    lines = rows(("<b>bold</b>.weight", 1, 0), ("<img src=x>", 1, 0))
    figure = sharing_graph(lines, [group("<b>bold</b>.weight", "<img src=x>")], title="<i>")
    text = figure.to_json() or ""
    assert "<img" not in text
    assert "<b>bold</b>.weight" not in text
    assert "<i>" not in text


def test_letters_go_on_after_z() -> None:
    assert [group_letter(n) for n in (0, 25, 26, 27, 52)] == ["A", "Z", "AA", "AB", "BA"]
