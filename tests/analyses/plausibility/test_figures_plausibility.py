"""The sentence strip and the two-text scatter: every token is there once, and nothing overlaps."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from inspector.analyses.contrast.figures import contrast_scatter, differing_words
from inspector.analyses.contrast.figures_cells import ACROSS, UP, count_cells
from inspector.analyses.plausibility.figures import plausibility_strip
from inspector.plotting.frames import where
from inspector.plotting.lettering import BoxPlace, Rectangle, flow, label_box, place_labels, text_width
from inspector.plotting.theme import DARK, LIGHT
from inspector.plotting.theme import contrast as ink_contrast
from inspector.text import plural

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def traces(figure: go.Figure) -> list[Any]:
    return list(figure["data"])


def trace(figure: go.Figure, name: str) -> Any:
    return next(each for each in traces(figure) if each.name == name)


def layout(figure: go.Figure) -> Any:
    return figure["layout"]


def notes(figure: go.Figure) -> list[Any]:
    return figure.to_dict()["layout"].get("annotations", [])


# --- lettering -----------------------------------------------------------------------------------


def test_boxes_fill_lines_and_words_stay_whole():
    places = flow([30, 30, 30, 20], ["a", "b", "b", "c"], width=90, gap=5, joint=1)
    # "b" and "b" need 61 after 35: they go down together, and "c" follows them.
    assert places == [BoxPlace(0, 0), BoxPlace(1, 0), BoxPlace(1, 31), BoxPlace(1, 66)]


def test_a_word_longer_than_a_line_breaks_between_its_pieces():
    places = flow([40, 50, 50, 50], ["a", "b", "b", "b"], width=110, gap=5, joint=1)
    assert places == [BoxPlace(0, 0), BoxPlace(0, 45), BoxPlace(1, 0), BoxPlace(1, 51)]


@pytest.mark.parametrize("seed", range(5))
def test_no_box_touches_another_or_leaves_its_line(seed):
    draw = np.random.default_rng(seed)
    widths = draw.uniform(5, 120, 80).tolist()
    groups = np.sort(draw.integers(0, 40, 80)).tolist()
    places = flow(widths, groups, width=300, gap=5, joint=1)
    boxes = [(place.line, place.left, place.left + width)
             for place, width in zip(places, widths, strict=True)]  # fmt: skip
    assert all(right <= 300 for _, _, right in boxes)
    for before, after in itertools.pairwise(boxes):
        assert after[0] == before[0] + 1 or after[1] > before[2]


def test_wide_letters_take_more_room():
    assert text_width("mmm", 10) > text_width("aaa", 10) > text_width("iii", 10)
    assert text_width("語", 10) >= 10
    assert text_width("ab", 20) == 2 * text_width("ab", 10)


@pytest.mark.parametrize("seed", range(5))
def test_labels_touch_neither_each_other_nor_a_mark(seed):
    draw = np.random.default_rng(seed)
    marks = [(x, y) for x, y in draw.uniform(0, 300, (60, 2)).tolist()]
    others = [(x, y) for x, y in draw.uniform(0, 300, (40, 2)).tolist()]
    sizes = [(width, 18.0) for width in draw.uniform(10, 70, 60).tolist()]
    frame = Rectangle(0, 0, 300, 300)
    placed = place_labels(marks, sizes, within=frame, radius=3, others=others)
    boxes = [label_box(marks[label.mark], sizes[label.mark], label.across, label.up, 3) for label in placed]
    assert 5 < len(boxes) < 60  # not all of them find room
    spots = [Rectangle(x - 3, y - 3, x + 3, y + 3) for x, y in marks]
    spots += [Rectangle(x - 1.5, y - 1.5, x + 1.5, y + 1.5) for x, y in others]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.touches(other)
    for box, spot in itertools.product(boxes, spots):
        assert not box.touches(spot)
    assert all(box.left >= 0 and box.right <= 300 and box.top >= 0 for box in boxes)


# --- the strip -----------------------------------------------------------------------------------


def sentence() -> pd.DataFrame:
    """[CLS] un ##lucky <b> [MASK] [SEP]."""
    nan = math.nan
    rows = [
        (0, "[CLS]", False, -1, nan, None, "", nan, nan),
        (1, "un", True, 0, 0.25, 2, "very", 0.5, 2.0),
        (2, "##lucky", True, 0, 1.0, 1, "##lucky", 1.0, 0.0),
        (3, "<b>", True, 1, 2.0**-12, 3041, "day & night", 0.125, 12.0),
        (4, "[MASK]", False, 2, nan, None, "", nan, nan),
        (5, "[SEP]", False, -1, nan, None, "", nan, nan),
    ]
    names = ["position", "token", "judged", "word", "probability", "rank", "best_token",
             "best_probability", "bits"]  # fmt: skip
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(rank=frame["rank"].astype("Int64"))


@THEMES
def test_every_token_is_a_box_colored_by_its_surprisal(theme):
    figure = plausibility_strip(sentence(), title="t", theme=theme)
    judged, others = trace(figure, "judged"), trace(figure, "not judged")
    assert list(judged.customdata) == [1, 2, 3]
    assert list(others.customdata) == [0, 4, 5]
    assert list(judged.marker.color) == [2.0, 0.0, 12.0]
    assert (judged.marker.cmin, judged.marker.cmax) == (0, 12)
    assert [color for _, color in judged.marker.colorscale] == list(theme.ramp)
    assert judged.textfont.color == theme.ramp_ink
    assert ink_contrast(others.textfont.color, theme.surface) >= 4.5


def test_a_strip_says_what_it_draws():
    judged = trace(plausibility_strip(sentence(), title="t"), "judged")
    shown = [text.split("<br>")[0] for text in judged.text]
    assert shown == ["un", "lucky", "&lt;b&gt;"]  # the piece is joined to its word
    assert [">2.0<" in judged.text[0], ">0.0<" in judged.text[1]] == [True, True]
    hovers = judged.hovertext
    assert hovers[0] == (
        "<b>un</b>, position 1<br>probability 25.0 %, rank 2<br>surprisal 2.00 bits<br>most likely: <b>very</b>, 50.0 %"
    )
    assert hovers[1].endswith("the most likely token here")
    assert "&lt;b&gt;" in hovers[2]
    assert "rank 3,041" in hovers[2]
    assert "day &amp; night" in hovers[2]
    special = trace(plausibility_strip(sentence(), title="t"), "not judged")
    assert list(special.text) == ["[CLS]", "[MASK]", "[SEP]"]
    assert all("not judged" in text for text in special.hovertext)


def test_a_strip_wraps_at_its_width():
    frame = pd.DataFrame(pd.concat([sentence()] * 8, ignore_index=True))
    frame["position"] = range(len(frame))
    figure = plausibility_strip(frame, title="t", width=400)
    boxes = sorted(
        (line, left, left + across)
        for name in ("judged", "not judged")
        for line, left, across in zip(
            trace(figure, name).y, trace(figure, name).base, trace(figure, name).x, strict=True
        )
    )
    assert len(boxes) == 48
    assert max(right for _, _, right in boxes) <= 400
    assert boxes[-1][0] >= 5
    for before, after in itertools.pairwise(boxes):
        assert after[0] > before[0] or after[1] > before[2]
    lines = boxes[-1][0] + 1
    assert layout(figure).height == layout(plausibility_strip(sentence(), title="t")).height + 53 * (lines - 1)


def test_a_calm_strip_stays_pale():
    calm = sentence().assign(bits=[math.nan, 1.0, 0.5, 2.0, math.nan, math.nan])
    assert trace(plausibility_strip(calm, title="t"), "judged").marker.cmax == 8


def test_what_the_model_rules_out_is_drawn_without_a_color():
    ruled_out = sentence().assign(bits=math.inf, probability=0.0)
    figure = plausibility_strip(ruled_out, title="t")
    assert len(trace(figure, "judged").customdata) == 0
    assert not trace(figure, "judged").marker.showscale
    hovers = trace(figure, "not judged").hovertext
    assert "the model rules this token out" in hovers[1]
    assert "the model only reads it" in hovers[0]


# --- the scatter ---------------------------------------------------------------------------------


def vocabulary(count: int, *, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    first = draw.normal(-12, 3, count)
    second = first + draw.normal(0, 1.5, count)
    return pd.DataFrame(
        {
            "token_id": range(count),
            "token": [f"t{number}" for number in range(count)],
            "kind": "word",
            "first": first,
            "second": second,
            "likelihood": (first + second) / 2,
            "difference": first - second,
        }
    )


def scatters(figure: go.Figure) -> tuple[Any, Any]:
    upper, lower = (each for each in traces(figure) if each.type == "scatter")
    return upper, lower


@pytest.mark.parametrize("count", [1, 60, 3000])
def test_every_token_is_drawn_once(count):
    frame = vocabulary(count)
    figure = contrast_scatter(frame, names=("Texas", "Ohio"), title="t", floor=-12.0)
    upper, lower = scatters(figure)
    ids = [*upper.customdata, *lower.customdata]
    cells = count_cells(frame, skip=np.array(ids), least=math.log(2))
    assert len(ids) == len(set(ids))
    assert cells.total == count - len(ids)
    drawn = 0
    for name in ("cells first", "cells neither", "cells second"):
        shade = np.array(trace(figure, name).z, dtype=float)
        drawn += round(np.nansum(np.expm1(shade)))  # the color is the logarithm of the count
    assert drawn == cells.total
    subtitle = layout(figure).title.subtitle.text
    assert f"{plural(count, 'token')}: {len(ids):,} drawn one by one, {cells.total:,} counted" in subtitle


def test_the_tokens_that_matter_have_marks():
    frame = vocabulary(3000)
    figure = contrast_scatter(frame, names=("a", "b"), title="t", floor=-12.0, pins=(2999,), points=40)
    upper, lower = scatters(figure)
    marked = {*upper.customdata, *lower.customdata}
    likely = where(frame, frame["likelihood"] >= -12.0)
    by_difference = likely.sort_values("difference")["token_id"].tolist()
    wanted = set(frame.sort_values("likelihood")["token_id"].tolist()[-20:])
    assert marked == wanted | set(by_difference[:10]) | set(by_difference[-10:]) | {2999}
    assert all(value >= 0 for value in upper.y)
    assert all(value < 0 for value in lower.y)
    at = list(upper.customdata).index(by_difference[-1])
    assert upper.x[at] == frame["likelihood"][by_difference[-1]]
    assert upper.y[at] == frame["difference"][by_difference[-1]]
    assert "times as likely with a" in upper.hovertext[at]
    assert f"t{by_difference[-1]}" in [note["text"] for note in notes(figure)]
    assert "t2999" in [note["text"] for note in notes(figure)]


@THEMES
def test_up_is_the_first_text_and_down_the_second(theme):
    figure = contrast_scatter(vocabulary(500), names=("<i>x</i>", "car"), title="t", theme=theme)
    upper, lower = scatters(figure)
    assert (upper.name, lower.name) == ("&lt;i&gt;x&lt;/i&gt;", "car")
    assert [each.text for each in layout(figure).annotations if "more likely" in each.text] == [
        "● up: more likely with <b>&lt;i&gt;x&lt;/i&gt;</b>", "◆ down: more likely with <b>car</b>"
    ]  # fmt: skip
    assert (upper.marker.color, lower.marker.color) == theme.groups[:2]
    assert upper.marker.symbol != lower.marker.symbol
    low, high = layout(figure).yaxis.range
    assert low == -high
    assert high >= vocabulary(500)["difference"].abs().max()
    for side, name in ((1, "cells first"), (-1, "cells second")):
        assert all(side * edge > 0 for edge in trace(figure, name).y)
    ticks = dict(zip(layout(figure).yaxis.tickvals, layout(figure).yaxis.ticktext, strict=True))
    assert ticks[0] == "equal"
    for value, text in ticks.items():
        if value:
            assert math.exp(abs(value)) == pytest.approx(float(text.removesuffix("×")))


def test_a_cell_counts_and_names_its_most_likely_tokens():
    frame = pd.DataFrame(
        {
            "token_id": [0, 1, 2, 3, 4, 5],
            "token": ["a", "b", "c", "d", "e", "<f>"],
            "likelihood": [-9.0, -9.001, -9.002, -9.003, -1.0, -5.0],
            "difference": [2.0, 2.0, 2.0, 2.0, 0.0, -2.0],
        }
    )
    cells = count_cells(frame, skip=np.array([4]), least=0.1)
    assert cells.counts.shape == (UP, ACROSS)
    assert cells.total == 5
    row, across = (int(place[0]) for place in np.nonzero(cells.counts == 4))
    assert cells.up[row] <= 2.0 < cells.up[row + 1]
    assert cells.across[across] <= -9.003 < -9.0 < cells.across[across + 1]
    assert cells.hovers[row][across] == "4 tokens here: a, b, c …"
    assert cells.counts[cells.middle].sum() == 0  # the token without a difference is skipped
    assert "1 token here: &lt;f&gt;" in itertools.chain.from_iterable(cells.hovers)
    assert list(cells.up) == pytest.approx([-edge for edge in cells.up[::-1]])


def test_equal_texts_favor_neither():
    frame = vocabulary(500)
    frame = frame.assign(second=frame["first"], likelihood=frame["first"], difference=0.0)
    figure = contrast_scatter(frame, names=("first", "second"), title="t")
    assert np.isnan(np.array(trace(figure, "cells first").z, dtype=float)).all()
    assert np.isnan(np.array(trace(figure, "cells second").z, dtype=float)).all()
    upper, lower = scatters(figure)
    assert len(lower.customdata) == 0
    assert all(text.split("<br>")[2] == "as likely with both" for text in upper.hovertext)


def test_what_has_no_number_is_left_out_and_counted():
    frame = vocabulary(50)
    frame.loc[3, ["first", "likelihood", "difference"]] = -math.inf
    frame.loc[7, ["first", "likelihood", "difference"]] = math.nan
    figure = contrast_scatter(frame, names=("a", "b"), title="t")
    upper, lower = scatters(figure)
    assert {*upper.customdata, *lower.customdata} == set(range(50)) - {3, 7}
    assert layout(figure).title.subtitle.text == (
        "48 tokens: 48 drawn one by one, 0 counted in cells; 2 without a finite number left out"
    )


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("a dog is an [MASK].", "a car is an [MASK].", ("dog", "car")),
        ("In New York, [MASK]", "In Texas, [MASK]", ("New York,", "Texas,")),
        ("he said [MASK] to her", "she said [MASK] to him", ("he … her", "she … him")),
        ("a very old [MASK]", "a [MASK]", ("very old", "(nothing)")),
        ("[MASK]", "[MASK]", ("first", "second")),
    ],
)
def test_what_tells_two_texts_apart(first, second, words):
    assert differing_words(first, second) == words
