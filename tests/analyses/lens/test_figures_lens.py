"""The lens' figures against hand-computed numbers: colors, ranks, geometry, comparisons."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import Any

import pandas as pd
import pytest

from inspector.analyses.ladder.figures import first_by, geometry_plot
from inspector.analyses.lens.figures import token_heatmap
from inspector.analyses.lens.figures_colors import color_cells, offered, on_one_scale
from inspector.analyses.lens.figures_compare import comparable, compare_cells, same_top
from inspector.analyses.lens.figures_lines import rung_lines, rung_means
from inspector.plotting.labels import NARROWEST, SIZE
from inspector.plotting.lettering import Rectangle, text_width
from inspector.plotting.ranks import rank_lines, spread

STATES = pd.DataFrame(
    {
        "layer": [0, 0, 1, 1],
        "position": [0, 1, 0, 1],
        "rung": "logits",
        "entropy": [4.0, 2.0, 1.0, 0.5],
        "overlap": [1.0, 1.0, 1.0, 1.0],
        "correlation": [1.0, 1.0, 1.0, 1.0],
        "agrees": [0.0, 1.0, 1.0, 1.0],
    }
)
EMPTY = pd.DataFrame({"layer": [], "position": [], "token": [], "rank": []})


def cells(tops: dict[tuple[int, int], str], rung: str = "logits") -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"layer": layer, "position": position, "rung": rung, "rank": 0, "token": token,
             "token_id": sum(map(ord, token)), "score": 1.0, "probability": 0.25}
            for (layer, position), token in tops.items()
        ]
    )  # fmt: skip


SQUARE = {(0, 0): "a", (0, 1): "b", (1, 0): "c", (1, 1): "d"}


def test_agreement_is_written_as_well_as_colored() -> None:
    coloring = color_cells("agreement with the last layer", cells=cells(SQUARE), states=STATES,
                           pinned=EMPTY)  # fmt: skip
    figure = token_heatmap(cells(SQUARE), coloring=coloring, tokens=["x", "y"], title="t")
    heat: Any = figure["data"][0]
    assert [list(row) for row in heat["text"]] == [["a", "✓ b"], ["✓ c", "✓ d"]]
    assert heat["z"].tolist() == [[0.0, 1.0], [1.0, 1.0]]
    assert list(heat["colorbar"]["ticktext"]) == ["different token", "✓ the same"]


def test_low_entropy_and_good_ranks_get_the_strong_color() -> None:
    coloring = color_cells("entropy", cells=cells(SQUARE), states=STATES, pinned=EMPTY)
    assert (coloring.low, coloring.high, coloring.falling) == (0.0, 4.0, True)
    assert coloring.told((0, 1)) == "entropy: 2 nats"
    pinned = pd.DataFrame({"layer": [0, 1], "position": [0, 0], "token": "paris", "rank": [999, 0]})
    coloring = color_cells("rank of a pinned token", cells=cells(SQUARE), states=STATES,
                           pinned=pinned)  # fmt: skip
    assert coloring.values == pytest.approx({(0, 0): 3.0, (1, 0): 0.0})
    assert coloring.ticks == ((0.0, "1"), (1.0, "10"), (2.0, "100"), (3.0, "1,000"))
    assert coloring.told((0, 0)) == "rank of paris: 1,000"
    assert coloring.told((1, 1)) == ""
    assert coloring.signs == {(1, 0)}


def test_only_what_there_are_numbers_for_is_offered() -> None:
    cosine = STATES.assign(rung="cosine", entropy=math.nan)
    assert offered("cosine", states=cosine, pinned=EMPTY) == [
        "cosine", "agreement with the last layer", "overlap with the logits",
    ]  # fmt: skip
    headless = pd.DataFrame(STATES[["layer", "position", "rung", "entropy"]])
    pinned = pd.DataFrame({"rank": [1]})
    assert offered("dot", states=headless, pinned=pinned) == [
        "probability", "entropy", "rank of a pinned token",
    ]  # fmt: skip


def test_two_maps_have_one_scale() -> None:
    first = color_cells("entropy", cells=cells(SQUARE), states=STATES, pinned=EMPTY)
    second = color_cells("entropy", cells=cells(SQUARE), pinned=EMPTY,
                         states=STATES.assign(entropy=STATES["entropy"] * 2))  # fmt: skip
    assert {(each.low, each.high) for each in on_one_scale(first, second)} == {(0.0, 8.0)}


def test_a_large_map_stays_in_one_view_or_scrolls() -> None:
    many = cells({(layer, position): "token" for layer in range(48) for position in range(128)})
    tokens = [f"t{n}" for n in range(128)]
    labels = ["embeddings", *map(str, range(1, 48))]
    figure = token_heatmap(many, tokens=tokens, layers=labels, title="t", chosen=(3, 5))
    figure = figure.to_dict()
    assert figure["layout"].get("width") is None
    assert figure["layout"]["height"] < 800
    assert {text for row in figure["data"][0]["text"] for text in row} == {""}
    assert len(figure["data"][1]["customdata"]) == 48 * 128
    (outlined,) = figure["data"][1]["selectedpoints"]
    assert figure["data"][1]["customdata"][outlined] == [3, 5]
    assert "token" in figure["data"][1]["hovertext"][0]
    wide = token_heatmap(many, tokens=tokens, layers=labels, title="t", small=False).to_dict()
    assert wide["layout"]["width"] >= 48 * 44
    assert wide["data"][0]["text"][0][0] == "token"


def test_on_a_phone_few_layers_stand_side_by_side_and_many_scroll() -> None:
    def drawn(layers: int) -> dict[str, Any]:
        shown = cells({(layer, position): "australian" for layer in range(layers) for position in range(10)})
        tokens = [f"t{n}" for n in range(10)]
        return token_heatmap(shown, tokens=tokens, title="t", narrow=True).to_dict()

    few, many = drawn(5), drawn(10)
    assert few["layout"].get("width") is None
    assert [len(row) for row in few["data"][0]["text"]] == [5] * 10
    assert {text_width(text, 11) <= 250 / 5 for row in few["data"][0]["text"] for text in row} == {True}
    assert many["layout"]["width"] >= 10 * 44


def test_ranks_run_from_one_at_the_top_and_are_named_at_their_ends() -> None:
    ranks = pd.DataFrame(
        {
            "token": ["a", "a", "<b>", "<b>"],
            "token_id": [1, 1, 2, 2],
            "rung": ["cosine", "dot"] * 2,
            "rank": [412, 0, 1, 1],
        }
    )
    figure = rank_lines(ranks, along="rung", stops=("cosine", "dot"), labels=("cosine", "dot"),
                        title="t").to_dict()  # fmt: skip
    assert [list(line["y"]) for line in figure["data"]] == [[413, 1], [2, 2]]
    low, high = figure["layout"]["yaxis"]["range"]
    assert low > math.log10(413) > 0 > high
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["a", "&lt;b&gt;"]
    assert len({line["marker"]["symbol"] for line in figure["data"]}) == 2


def test_names_at_one_height_are_moved_apart() -> None:
    assert spread([0.0, 0.0, 0.05, 3.0], step=0.1, last=3.0) == pytest.approx([0, 0.1, 0.2, 3.0])
    crowded = spread([1.0] * 5, step=10.0, last=1.0)
    assert max(crowded) <= 1.0
    assert all(low < high for low, high in pairwise(crowded))


def test_the_geometry_marks_who_wins_by_which_rung() -> None:
    """|h| = 2: "near" has the larger cosine, "long" the larger dot product."""
    geometry = pd.DataFrame(
        {"token": ["near", "long"], "token_id": [1, 2], "norm": [1.0, 3.0], "cosine": [0.9, 0.5],
         "dot": [1.8, 3.0], "pinned": [False, False]}
    )  # fmt: skip
    ranks = pd.DataFrame(
        {"token_id": [1, 2] * 3, "rung": ["cosine"] * 2 + ["dot"] * 2 + ["logits"] * 2,
         "rank": [0, 1, 1, 0, 1, 0]}
    )  # fmt: skip
    assert first_by(ranks) == {1: ["cosine"], 2: ["dot", "logits"]}
    figure = geometry_plot(geometry, ranks, hidden_norm=2.0, title="t")
    lines: Any = figure["data"]
    points = {line["name"]: line for line in lines if "markers" in line["mode"]}
    assert set(points) == {"first by cosine", "first by dot and logits"}
    assert points["first by dot and logits"]["x"] == (0.5,)
    assert points["first by dot and logits"]["y"] == (3.0,)
    curves = [line for line in lines if line["mode"] == "lines"]
    assert curves[0]["name"] == "h·e = 3"
    for x, y in zip(curves[0]["x"], curves[0]["y"], strict=True):
        assert 2.0 * x * y == pytest.approx(3.0)


def test_names_in_the_geometry_touch_neither_each_other_nor_marks() -> None:
    """Tokens close together: each name that is written has room at the narrowest width of the plot."""
    count = 14
    turns = [(place * 0.37) % 1 for place in range(count)]
    geometry = pd.DataFrame(
        {"token": [f"token {place}" for place in range(count)], "token_id": range(count),
         "norm": [0.8 + 0.1 * turn for turn in turns], "cosine": [0.05 * place / count for place in range(count)],
         "dot": 1.0, "pinned": False}
    )  # fmt: skip
    ranks = pd.DataFrame({"token_id": range(count), "rung": "dot", "rank": range(count)})
    figure: Any = geometry_plot(geometry, ranks, hidden_norm=2.0, title="t")
    layout = figure.to_dict()["layout"]
    height = layout["height"] - layout["margin"]["t"] - layout["margin"]["b"]
    (left, right), (low, high) = layout["xaxis"]["range"], layout["yaxis"]["range"]

    def spot(x: float, y: float) -> tuple[float, float]:
        return NARROWEST * (x - left) / (right - left), height * (high - y) / (high - low)

    def box(label: dict[str, Any]) -> Rectangle:
        (x, y), width, tall = spot(label["x"], label["y"]), text_width(label["text"], SIZE) + 2, SIZE
        x, y = x + label["xshift"], y - label["yshift"]
        start = x - {"left": 0, "center": width / 2, "right": width}[label["xanchor"]]
        top = y - {"top": 0, "middle": tall / 2, "bottom": tall}[label["yanchor"]]
        return Rectangle(start, top, start + width, top + tall)

    boxes = [box(label) for label in layout["annotations"] if label["text"].startswith("token")]
    boxes += [
        Rectangle(x - 3, y - 3, x + 3, y + 3)
        for x, y in (spot(*each) for each in zip(geometry["cosine"], geometry["norm"], strict=True))
    ]
    assert len(boxes) > count + count // 2  # most have a name
    assert not [pair for pair in combinations(boxes, 2) if pair[0].touches(pair[1])]


def test_rungs_are_averaged_over_positions_without_comparing_logits_to_themselves() -> None:
    dots = STATES.assign(rung="dot", overlap=[0.0, 1.0, 0.5, 1.0])
    states = pd.concat([STATES, dots], ignore_index=True)
    means = rung_means(states, "overlap").set_index(["rung", "layer"])["overlap"]
    assert means.to_dict() == {("dot", 0): 0.5, ("dot", 1): 0.75}
    assert set(rung_means(states, "agrees")["rung"]) == {"dot", "logits"}
    figure = rung_lines(states, measure="agrees", rungs=("dot", "logits"),
                        layers=("embeddings", "1"), name="x").to_dict()  # fmt: skip
    assert [list(line["y"]) for line in figure["data"]] == [[0.5, 1.0], [0.5, 1.0]]


def test_tops_are_counted_by_hand() -> None:
    both = pd.concat([cells(SQUARE, "dot"), cells(SQUARE | {(1, 1): "z"}, "cosine")])
    assert same_top(both, 0, "dot", "cosine") == (2, 2)
    assert same_top(both, 1, "dot", "cosine") == (1, 2)


def test_the_first_difference_is_the_lowest_layer() -> None:
    tokens = (["x", "y"], ["x", "q"])
    found = compare_cells(cells(SQUARE), cells(SQUARE | {(0, 1): "e", (1, 0): "f"}), tokens=tokens, layers=(2, 2))
    assert (found.positions, found.changed, found.compared) == (2, (1,), 4)
    assert found.cells == ((0, 1), (1, 0))
    assert compare_cells(cells(SQUARE), cells(SQUARE), tokens=tokens, layers=(2, 3)).positions == 0


def test_texts_of_other_lengths_are_compared_as_far_as_they_begin_alike() -> None:
    assert comparable("abc", "xyz") == 3
    assert comparable("abcd", "abx") == 2
    assert comparable("abc", "abcd") == 3
    assert comparable("abc", "z") == 0
