"""The heat map and the bars of a comparison, as Plotly gets them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest

from inspector.analyses.compare.figures import NO_NUMBER, NOTHING, change_bars, change_heatmap
from inspector.analyses.compare.figures_common import common_bars
from inspector.analyses.compare.result import VocabularyMatch
from inspector.analyses.compare.words import in_common
from inspector.plotting.lettering import text_width
from inspector.plotting.theme import COLOR_BAR, DARK, LIGHT, contrast

KINDS = ("query.weight", "<b>bias</b>")


def layers(count: int = 2) -> pd.DataFrame:
    """Two kinds in each layer: changed by 1 % and 10 % in turn, and an equal one."""
    rows = []
    for layer in range(count):
        rows += [
            (f"layer {layer}", layer, KINDS[0], 1, 1, 0.01 * 10 ** (layer % 2), 0.9, 0.5),
            (f"layer {layer}", layer, KINDS[1], 2, 0, 0.0, 1.0, 0.0),
        ]
    names = ["layer", "number", "kind", "tensors", "unequal", "relative_change", "cosine", "max_abs"]
    return pd.DataFrame(rows, columns=names)


def heatmap(frame: pd.DataFrame, **options: Any) -> Any:
    return change_heatmap(frame, names="a and b", values="all", **options)


def test_what_two_have_in_common_is_counted_and_drawn():
    frame = pd.DataFrame(
        [
            ("equal", "4 × 4", "4 × 4"),
            ("reshaped", "9", "8"),
            ("removed", "4 × 4", ""),
            ("removed", "7", ""),
            ("added", "", "4 × 4"),
            ("added", "", "5"),
            ("added", "", "5"),
        ],
        columns=["status", "shape", "other_shape"],
    )
    vocabulary = VocabularyMatch(10, 8, 4, 4, "token", 6, 5, 4, 2, (), (), 0, 0, math.nan, math.nan)
    shared = in_common(frame, vocabulary)
    assert shared == {"tensors by name": (2, 2, 3), "tensors by shape": (2, 2, 3), "tokens": (4, 6, 2)}
    assert "tokens" not in in_common(frame, replace(vocabulary, matched_by="row"))
    assert "tokens" not in in_common(frame, None)
    figure: Any = common_bars(shared, names=("a<b", "c"))
    assert [bar.name for bar in figure.data] == ["only in a&lt;b", "in both", "only in c"]
    for place, counts in enumerate(shared.values()):
        shares = [bar.x[place] for bar in figure.data]
        assert shares == pytest.approx([count / sum(counts) for count in counts])


def tensors() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": ["embeddings.word_embeddings.weight", "cls.<i>bias"],
            "relative_change": [0.5, 0.25],
            "cosine": [0.9, 0.99],
            "max_abs": [0.1, 0.2],
        }
    )


def only(figure: Any) -> Any:
    """The one trace of a figure."""
    (trace,) = figure.data
    return trace


def test_cells_lie_where_their_layer_and_kind_meet():
    figure = heatmap(layers(), theme=LIGHT)
    (cells,) = figure.data
    assert list(cells.z[0]) == [-2.0, -1.0]
    assert list(cells.z[1]) == [-2.0, -2.0]  # the palest
    assert [list(row) for row in cells.text] == [["1%", "10%"], [NOTHING, NOTHING]]
    assert (cells.zmin, cells.zmax) == (-2, -1)
    assert list(figure.layout.xaxis.ticktext) == ["layer 0", "layer 1"]
    assert list(figure.layout.yaxis.ticktext) == [KINDS[0], "&lt;b&gt;bias&lt;/b&gt;"]
    assert "cosine 0.9" in cells.hovertext[0][0]
    assert "(2 tensors)<br>no difference" in cells.hovertext[1][0]
    assert figure.layout.title.text == "<b>What changed in each layer, a and b</b>"


def test_the_cosine_colors_by_its_distance_from_one():
    cells = only(heatmap(layers(), measure="cosine"))
    assert cells.z[0][0] == pytest.approx(math.log10(0.1))
    assert cells.text[0][0] == "0.900"
    near = layers().assign(cosine=[1 - 3e-6, 1.0, 1.0, 1.0])
    close = only(heatmap(near, measure="cosine"))
    assert list(close.text[0]) == ["1−3e-6", "1"]
    assert cells.colorbar.title.text.strip() == "1 − cosine"


@pytest.mark.parametrize(("low", "high"), [(0.01, 0.1), (1e-5, 0.1), (0.02, 7_566.38), (1e-8, 1e12), (0.5, 0.5)])
def test_numbers_of_the_color_bar_stand_apart(low, high):
    frame = layers(2).assign(relative_change=[low, 0.0, high, 0.0])
    bar = only(heatmap(frame)).colorbar
    cells = only(heatmap(frame))
    pixels = [COLOR_BAR * (value - cells.zmin) / max(cells.zmax - cells.zmin, 1e-9) for value in bar.tickvals]
    widths = [text_width(text, bar.tickfont.size) for text in bar.ticktext]
    ends = [(at - width / 2, at + width / 2) for at, width in zip(pixels, widths, strict=True)]
    assert all(left[1] < right[0] for left, right in pairwise(ends))
    assert high == low or len(ends) >= 2 or high / low < 100


def test_what_was_not_measured_is_marked():
    frame = layers()
    frame.loc[0, ["relative_change", "cosine", "max_abs"]] = math.nan
    cells = only(heatmap(frame))
    assert cells.text[0][0] == NO_NUMBER
    assert cells.z[0][0] == cells.zmin
    assert "not measured" in cells.hovertext[0][0]


@pytest.mark.parametrize("count", [0, 1, 48, 200])
def test_any_number_of_layers_has_a_figure(count):
    figure = heatmap(layers(count), theme=DARK)
    (cells,) = figure.data
    assert len(cells.z) == (2 if count else 0)
    assert len(figure.layout.xaxis.ticktext) <= 41
    assert (cells.texttemplate is None) == (count >= 48)


def test_nothing_that_changed_is_drawn_without_a_scale_that_breaks():
    frame = layers().assign(relative_change=0.0, unequal=0, cosine=1.0)
    cells = only(heatmap(frame))
    assert {value for row in cells.z for value in row} == {cells.zmin}  # NaN would not be drawn
    assert cells.zmin < cells.zmax
    assert not cells.showscale


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_numbers_can_be_read_on_every_color(theme):
    cells = only(heatmap(layers(), theme=theme))
    assert cells.textfont.color == theme.ramp_ink
    assert min(contrast(theme.ramp_ink, color) for _, color in cells.colorscale) >= 4.5


def test_bars_say_their_share_and_quote_names():
    figure: Any = change_bars(tensors(), names="a and b", theme=DARK)
    (bars,) = figure.data
    assert list(bars.x) == [0.5, 0.25]
    assert list(bars.text) == [" 50%", " 25%"]
    assert figure.layout.yaxis.ticktext[1] == "cls.&lt;i&gt;bias"
    assert "largest difference 0.1" in bars.hovertext[0]
