"""The figures say what the frames say: checked against hand-computed positions, texts, colors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from inspector.analyses.embeddings.figures import norms_histogram, pad_norm_curve
from inspector.analyses.embeddings.result import KINDS
from inspector.analyses.lens.figures import token_heatmap
from inspector.analyses.lens.figures_colors import color_cells
from inspector.analyses.vocabulary_map.figures import projection_figure
from inspector.plotting import theme as look
from inspector.plotting.kinds import KIND_STYLES
from inspector.plotting.layers import layer_figure
from inspector.plotting.predictions import topk_bars
from inspector.plotting.theme import DARK, LIGHT, contrast, get_theme, ink_on, mix

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def traces(figure: go.Figure) -> list[Any]:
    return list(figure["data"])


def trace(figure: go.Figure, name: str) -> Any:
    return next(t for t in traces(figure) if t.name == name)


def notes(figure: go.Figure) -> list[str]:
    return [a["text"] for a in figure.to_dict()["layout"].get("annotations", [])]


def frame_of_points(**more: list) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "token_id": [0, 1, 2, 3, 4],
            "token": ["[PAD]", "cat", "##s", "[CLS]", "<s>"],
            "x": [0.0, 1.0, 2.0, 3.0, 4.0],
            "y": [5.0, 6.0, 7.0, 8.0, 9.0],
            "norm": [0.1, 1.0, 1.1, 1.2, 0.9],
            "kind": ["padding", "word", "subword", "special", "special"],
            **more,
        }
    )


# --- colors -------------------------------------------------------------------------------------


def test_contrast_is_that_of_the_standard() -> None:
    # WCAG's own examples: black on white is 21, and #777777 on white is 4.48.
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#ffffff", "#777777") == contrast("#777777", "#ffffff")


@THEMES
def test_text_is_readable_on_what_it_stands_on(theme) -> None:
    for ground in (theme.page, theme.surface):
        for ink in (theme.ink, theme.muted, *theme.groups):
            assert contrast(ink, ground) >= 4.5, (ink, ground)
    for low, high in zip(theme.ramp, theme.ramp[1:], strict=False):
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            assert contrast(theme.ramp_ink, mix(low, high, share)) >= 4.5
    for group in theme.groups:
        assert contrast(ink_on(theme.groups[0]), group) >= 4.5  # one ink for all groups


@THEMES
def test_marks_stand_out_from_the_page(theme) -> None:
    assert set(theme.kinds) == set(KINDS)
    for kind, color in theme.kinds.items():
        assert contrast(color, theme.page) >= 3.0, kind


def test_the_ramp_grows_steadily() -> None:
    for theme in (LIGHT, DARK):
        steps = [contrast(color, theme.page) for color in theme.ramp]
        assert steps == sorted(steps)


def test_each_kind_has_a_shape_of_its_own() -> None:
    assert tuple(KIND_STYLES) == KINDS
    assert len({style.symbol for style in KIND_STYLES.values()}) == len(KINDS)


def test_a_theme_that_nobody_knows_is_the_light_one() -> None:
    assert get_theme("dark") is DARK
    assert get_theme(None) is LIGHT
    assert get_theme("solarized") is LIGHT


# --- the lens ------------------------------------------------------------------------------------


def lens_cells(layers: int, positions: int) -> pd.DataFrame:
    """Token "l<layer>p<position>r<rank>", probability 0.8 at rank 0 and 0.1 at rank 1."""
    return pd.DataFrame(
        [
            {
                "layer": layer,
                "position": position,
                "rung": "logits",
                "rank": rank,
                "token": f"l{layer}p{position}r{rank}",
                "token_id": rank,
                "score": 10.0 * layer + position - rank,
                "probability": 0.8 if rank == 0 else 0.1,
            }
            for layer in range(layers)
            for position in range(positions)
            for rank in (1, 0)
        ]
    )


def test_lens_puts_embeddings_at_the_bottom_and_the_last_layer_on_top() -> None:
    figure = token_heatmap(
        lens_cells(3, 2), tokens=["a", "a"], layers=["embeddings", "1", "2"], title="demo: lens"
    ).to_dict()
    heat = figure["data"][0]
    assert [list(row) for row in heat["text"]] == [["l0p0r0", "l0p1r0"], ["l1p0r0", "l1p1r0"], ["l2p0r0", "l2p1r0"]]
    low, high = figure["layout"]["yaxis"]["range"]
    assert low < high
    assert figure["layout"]["yaxis"]["ticktext"] == ["embeddings", "1", "2"]
    assert figure["layout"]["xaxis"]["ticktext"] == ["a", "a"]  # the same token twice stays twice
    assert figure["layout"]["xaxis"]["tickvals"] == [0, 1]
    assert "demo: lens" in figure["layout"]["title"]["text"]


def test_lens_cells_can_be_clicked_and_tell_layer_and_position() -> None:
    frames = trace(token_heatmap(lens_cells(2, 3), tokens=list("abc"), title="t"), "cells")
    assert list(frames["customdata"]) == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert list(zip(frames["x"], frames["base"], strict=True)) == [
        (0, -0.5), (1, -0.5), (2, -0.5), (0, 0.5), (1, 0.5), (2, 0.5),
    ]  # fmt: skip
    assert set(frames["y"]) == {1} == {frames["width"]}  # from edge to edge
    assert frames["marker"]["opacity"] == 0
    assert frames["selected"]["marker"]["opacity"] == 1


def test_lens_turns_for_long_texts() -> None:
    tokens = [f"t{n}" for n in range(20)]
    figure = token_heatmap(lens_cells(2, 20), tokens=tokens, title="t")
    frames = trace(figure, "cells")
    assert frames["customdata"][3] == [0, 3]
    assert (frames["x"][3], frames["base"][3]) == (0, 2.5)
    first, last = figure.to_dict()["layout"]["yaxis"]["range"]
    assert first > last  # the first position is on top
    assert [row[1] for row in figure.to_dict()["data"][0]["text"]][:2] == ["l1p0r0", "l1p1r0"]
    kept = trace(token_heatmap(lens_cells(2, 20), tokens=tokens, title="t", down=False), "cells")
    assert (kept["x"][3], kept["base"][3]) == (3, -0.5)


def test_lens_hover_lists_the_ranking_in_order() -> None:
    frames = trace(token_heatmap(lens_cells(1, 1), tokens=["<s>"], title="t"), "cells")
    assert frames["hovertext"] == (
        "<b>layer 0, position 0: &lt;s&gt;</b><br>"
        "1. l0p0r0 · score 0.000 · 80.0 %<br>2. l0p0r1 · score -1.000 · 10.0 %",
    )


def test_lens_colors_by_probability_of_all_or_by_the_range_of_scores() -> None:
    cells = lens_cells(2, 2)
    heat = trace(token_heatmap(cells, tokens=["a", "b"], title="t"), "colors")
    assert (heat["zmin"], heat["zmax"]) == (0.0, 1.0)
    by_score = color_cells("cosine", cells=cells, states=cells, pinned=cells)
    heat = trace(token_heatmap(cells, coloring=by_score, tokens=["a", "b"], title="t"), "colors")
    assert (heat["zmin"], heat["zmax"]) == (0.0, 11.0)
    assert np.array_equal(heat["z"], [[0.0, 1.0], [10.0, 11.0]])


def test_lens_shows_cosine_which_has_no_probability() -> None:
    cells = lens_cells(1, 2).assign(probability=math.nan)
    by_score = color_cells("cosine", cells=cells, states=cells, pinned=cells)
    figure = token_heatmap(cells, coloring=by_score, tokens=["a", "b"], title="t")
    assert trace(figure, "cells")["hovertext"][0].endswith("<br>1. l0p0r0 · score 0.000<br>2. l0p0r1 · score -1.000")


def test_lens_shortens_long_tokens_but_not_in_the_hover_text() -> None:
    cells = lens_cells(1, 1).assign(token="internationalization")
    figure = token_heatmap(cells, tokens=["a"], title="t")
    assert [list(row) for row in trace(figure, "colors")["text"]] == [["international…"]]
    assert "internationalization" in trace(figure, "cells")["hovertext"][0]


def test_lens_pales_what_repeats_the_input_and_frames_what_is_emphasized() -> None:
    cells = lens_cells(2, 3)
    tokens = ["l0p0r0", "x", "[MASK]"]  # the first is what the first layer says there
    figure = token_heatmap(cells, tokens=tokens, title="t", subtitle="by dot", emphasized=[2])
    assert [list(row) for row in trace(figure, "colors")["text"]] == [
        ["", "l0p1r0", "l0p2r0"],
        ["l1p0r0", "l1p1r0", "l1p2r0"],
    ]
    assert [list(row) for row in trace(figure, "repeats")["text"]] == [["l0p0r0", "", ""], ["", "", ""]]
    layout = figure.to_dict()["layout"]
    assert layout["title"]["subtitle"]["text"] == "by dot; pale where it repeats the input"
    assert layout["xaxis"]["ticktext"][1:] == ["x", "<b>[MASK]</b>"]
    (frame,) = layout["shapes"]
    assert (frame["x0"], frame["x1"], frame["y0"], frame["y1"]) == (1.5, 2.5, -0.5, 1.5)
    entropy = color_cells("rank of a pinned token", cells=cells, states=cells, pinned=cells)
    plain = token_heatmap(cells, coloring=entropy, tokens=tokens, title="t")
    assert [each.name for each in traces(plain)] == ["colors", "cells"]


# --- predictions ---------------------------------------------------------------------------------


def test_bars_keep_order_and_twins_and_never_round_to_nothing() -> None:
    predictions = pd.DataFrame(
        {
            "token": ["paris", "<b>", "paris"],
            "token_id": [7, 8, 9],
            "probability": [0.5, 0.004, 0.00002],
            "logit": [9.0, 4.0, 1.0],
        }
    )
    figure = topk_bars(predictions, title="demo: mask 1").to_dict()
    bars = figure["data"][0]
    assert list(bars["y"]) == [0, 1, 2]
    assert bars["text"] == [" 50.0 %", " 0.40 %", " &lt;0.01 %"]
    assert bars["customdata"] == [7, 8, 9]
    assert figure["layout"]["yaxis"]["ticktext"] == ["paris", "&lt;b&gt;", "paris"]
    top, bottom = figure["layout"]["yaxis"]["range"][::-1]
    assert top < bottom  # the most likely on top
    assert figure["layout"]["xaxis"]["range"][1] > 0.5  # room for the text


def test_bars_grow_in_height_with_their_number() -> None:
    one = pd.DataFrame({"token": ["a"], "token_id": [1], "probability": [1.0], "logit": [1.0]})
    ten = pd.concat([one] * 10, ignore_index=True)
    three = ten.head(3)
    heights = [topk_bars(frame, title="t").to_dict()["layout"]["height"] for frame in (one, three, ten)]
    assert heights[2] - heights[1] == 7 * 22
    assert heights[1] - heights[0] == 3 * 22 - 64  # the least that Plotly draws on


# --- norms ---------------------------------------------------------------------------------------


def test_histogram_counts_every_row_and_marks_padding_by_shape() -> None:
    figure = norms_histogram(frame_of_points(), name="demo")
    bars = trace(figure, "all tokens")
    assert sum(bars["y"]) == 5
    assert trace(figure, "padding")["customdata"] == (0,)
    assert list(trace(figure, "padding")["x"]) == [0.1]
    assert trace(figure, "special")["customdata"] == (4, 3)  # by norm
    assert trace(figure, "padding")["marker"]["symbol"] != (trace(figure, "special")["marker"]["symbol"])
    assert set(notes(figure)) == {
        "<b>[PAD]</b>", "<b>&lt;s&gt;</b>", "<b>[CLS]</b>", "median 1.000",
    }  # fmt: skip


def test_histogram_labels_that_would_touch_stand_on_different_lines() -> None:
    points = frame_of_points(norm=[0.1, 0.0, 2.0, 1.0, 1.001])
    labels = {a["text"]: a["y"] for a in norms_histogram(points, name="n").to_dict()["layout"]["annotations"]}
    assert labels["<b>[CLS]</b>"] != labels["<b>&lt;s&gt;</b>"]
    assert labels["<b>[PAD]</b>"] == labels["<b>[CLS]</b>"]  # far apart: one line is enough


def test_histogram_names_padding_even_among_hundreds_of_special_tokens() -> None:
    count = 300
    points = pd.DataFrame(
        {
            "token_id": range(count),
            "token": ["[PAD]", *(f"<extra_{n}>" for n in range(1, count))],
            "norm": np.linspace(1.0, 2.0, count),
            "kind": ["padding", *["special"] * (count - 1)],
        }
    )
    written = notes(norms_histogram(points, name="n"))
    assert "<b>[PAD]</b>" in written
    assert len(written) == 13  # 12 tokens and the median


def test_histogram_leaves_out_what_is_not_a_number() -> None:
    figure = norms_histogram(frame_of_points(norm=[math.nan, 1.0, 1.1, 1.2, 0.9]), name="n")
    assert sum(trace(figure, "all tokens")["y"]) == 4
    assert "<b>[PAD]</b>" not in notes(figure)


def test_pad_curve_names_both_lines_apart() -> None:
    curve = pd.DataFrame({"step": [0, 10, 20], "pad_norm": [0.0, 0.5, 0.9], "median_norm": [1.0, 1.0, 0.95]})
    figure = pad_norm_curve(curve, name="demo")
    assert list(trace(figure, "padding")["y"]) == [0.0, 0.5, 0.9]
    assert trace(figure, "padding")["line"]["dash"] != trace(figure, "median row")["line"]["dash"]
    ends = {a["text"]: a["yanchor"] for a in figure.to_dict()["layout"]["annotations"]}
    assert ends == {"<b>median row</b><br>0.950": "bottom", "<b>padding</b><br>0.900": "top"}


# --- maps ----------------------------------------------------------------------------------------


def test_the_map_draws_kinds_in_order_with_padding_on_top() -> None:
    figure = projection_figure(frame_of_points(), title="demo: map")
    data = [t for t in traces(figure) if t.name != "padding ring"]
    assert [t["name"] for t in data] == ["word (1)", "subword (1)", "special (2)", "padding (1)"]
    assert [t["customdata"] for t in data] == [(1,), (2,), (3, 4), (0,)]
    assert data[2]["hovertext"][1] == "<b>&lt;s&gt;</b><br>id 4 · special<br>norm 0.900"
    assert len({t["marker"]["symbol"] for t in data}) == 4


def test_flat_map_rings_padding_and_labels_it_with_the_special_tokens() -> None:
    figure = projection_figure(frame_of_points(), title="t")
    ring = trace(figure, "padding ring")
    assert (list(ring["x"]), list(ring["y"])) == ([0.0], [5.0])
    assert figure.to_dict()["data"][-1]["name"] == "padding ring"
    assert set(notes(figure)) == {"<b>[PAD]</b>", "<b>[CLS]</b>", "<b>&lt;s&gt;</b>"}


def test_flat_map_keeps_labels_of_neighbors_apart() -> None:
    points = frame_of_points(x=[0.0, -9.0, 9.0, 0.01, 0.02], y=[0.0, -9.0, 9.0, 0.0, 0.0])
    offsets = [(a["ax"], a["ay"]) for a in projection_figure(points, title="t").to_dict()["layout"]["annotations"]]
    assert len(set(offsets)) == 3


def test_hostile_text_is_shown_and_not_obeyed() -> None:
    nasty = "\u202e<img src=x onerror=alert(1)>\x00"
    figure = projection_figure(frame_of_points(token=[nasty] * 5), title=nasty)
    text = figure.to_json() or ""
    assert "<img" not in text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert text.count("&lt;img src=x onerror=alert(1)&gt;") > 5


def test_an_empty_vocabulary_has_figures_without_marks() -> None:
    nothing = frame_of_points().iloc[:0]
    assert traces(projection_figure(nothing, title="t")) == []
    figure = norms_histogram(nothing, name="n")
    assert sum(trace(figure, "all tokens")["y"]) == 0
    assert notes(figure) == []


def test_what_a_figure_adds_to_the_common_layout_is_what_plotly_makes_of_it() -> None:
    own: dict[str, Any] = {
        "title": {"font": {"size": 15}},
        "xaxis": look.axis(title="layer", theme=LIGHT, grid=False) | {"range": [0, 4]},
        "legend": look.legend_below(LIGHT),
        "margin": {"t": 80, "b": 110},
        "hovermode": "x unified",
    }
    expected = look.figure("a <b>", "c", theme=LIGHT, height=100).update_layout(**own)
    assert look.figure("a <b>", "c", theme=LIGHT, height=100, **own).to_plotly_json() == expected.to_plotly_json()


@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_a_figure_of_few_kinds_has_room_for_their_names_and_the_color_bar(count):
    kinds = [f"kind {place}" for place in range(count)]
    layout = layer_figure("t", "s", layers=["0", "1"], kinds=kinds, cell=26, below=118, theme=LIGHT).to_dict()["layout"]
    room = layout["height"] - layout["margin"]["t"] - layout["margin"]["b"]
    assert room >= max(100, 26 * count)  # Plotly moves names out of the picture below about 90 pixels
