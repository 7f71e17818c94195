"""Two texts over the whole vocabulary: how likely every token is, against which text wants it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.contrast.figures_cells import Cells, count_cells
from inspector.analyses.contrast.result import Contrast
from inspector.plotting import theme as look
from inspector.plotting.frames import column, columns, where
from inspector.plotting.labels import NamedMark, write_labels
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import count_text, percent_text, plain, plural, shorten

HEIGHT, RADIUS = 310, 4.0  # pixels of the plot, and of a mark
LINE = 20  # pixels of what a half means
POINTS = 400  # tokens with a mark of their own
LABELS = 48  # tokens that get a label where there is room
DECADE = math.log(10)
ENDS = " .,;:!?"  # punctuation that tells no texts apart
LEAST_RANGE = math.log(2)  # of the vertical axis: texts that are the same have no spread


@dataclass(frozen=True, slots=True)
class _Side:
    """What one half of the figure looks like."""

    name: str
    color: str
    symbol: str
    sign: int


def contrast_scatter(
    tokens: pd.DataFrame,
    *,
    names: tuple[str, str],
    title: str,
    floor: float | None = None,
    pins: Sequence[int] = (),
    theme: Theme = LIGHT,
    points: int = POINTS,
) -> go.Figure:
    """Draw likelihood against difference for the whole vocabulary.

    The tokens that matter have a mark each: the most likely, and those that the two texts contrast
    most at or above the floor. All others are counted in cells, so that 250,000 are as quick as 60.

    Args:
        tokens: `Contrast.tokens`: token_id, token, kind, first, second, likelihood, difference.
        names: What tells the texts apart, such as `differing_words` gives.
        floor: `Contrast.floor`, natural logarithm; None: every token may be among the contrasted.
        pins: Ids that are marked and labeled in any case.
        points: Tokens with a mark of their own.

    Returns:
        A figure with the traces "cells ..." below and one scatter a text on top, with customdata
        token_id. Tokens without a finite logarithm are left out and counted in the subtitle.
    """
    finite = np.isfinite(tokens["likelihood"]) & np.isfinite(tokens["difference"])
    drawn = where(tokens, finite)
    marked = _choose(drawn, floor, pins, points)
    cells = count_cells(drawn, skip=marked["token_id"].to_numpy(), least=LEAST_RANGE)
    said = _say(tokens, drawn, marked, cells)
    above = look.title_height(title, said) + 2 * LINE
    figure = look.figure(
        title,
        said,
        theme=theme,
        height=above + HEIGHT + 62,
        margin={"t": above},
        xaxis=_across(cells, theme),
        yaxis=_up(cells, theme),
        showlegend=False,
        hovermode="closest",
        clickmode="event+select",
        dragmode="zoom",
    )
    figure.add_hline(y=0, line={"color": theme.muted, "width": 1}, layer="below")
    sides = (_Side(names[0], theme.groups[0], "circle", 1), _Side(names[1], theme.groups[1], "diamond", -1))
    for name, color, low, high in (
        ("cells first", sides[0].color, cells.middle + 1, cells.rows),
        ("cells neither", theme.muted, cells.middle, cells.middle + 1),
        ("cells second", sides[1].color, 0, cells.middle),
    ):
        figure.add_trace(_cell_map(cells, name, color, slice(low, high), theme))
    for side in sides:
        figure.add_trace(_marks(marked, side, theme))
        figure.add_annotation(_name_half(side))
    _add_labels(figure, marked, cells, sides=sides, pins=pins, theme=theme)
    return figure


def differing_words(first: str, second: str) -> tuple[str, str]:
    """Say in a few words what tells two texts apart.

    Returns:
        The words of each that the other lacks, runs joined by "…"; "first" and "second" where
        the words are the same, and "(nothing)" where one text only adds.
    """
    texts = first.split(), second.split()
    runs: tuple[list[str], list[str]] = [], []
    matcher = difflib.SequenceMatcher(None, *texts, autojunk=False)
    for tag, low, high, start, stop in matcher.get_opcodes():
        if tag != "equal":
            for run, words in zip(runs, (texts[0][low:high], texts[1][start:stop]), strict=True):
                run.extend([" ".join(words)] if words else [])
    if not any(runs):
        return "first", "second"
    one, other = (" … ".join(run) or "(nothing)" for run in runs)
    return one, other


def _choose(drawn: pd.DataFrame, floor: float | None, pins: Sequence[int], points: int) -> pd.DataFrame:
    """Pins, the most likely half, and a quarter for each text from what it wants most."""
    above = drawn if floor is None else where(drawn, drawn["likelihood"] >= floor)
    chosen = [
        where(drawn, drawn["token_id"].isin(list(pins))),
        drawn.nlargest(points // 2, "likelihood"),
        where(above, above["difference"] > 0).nlargest(points // 4, "difference"),
        where(above, above["difference"] < 0).nsmallest(points // 4, "difference"),
    ]
    return pd.DataFrame(pd.concat(chosen).drop_duplicates("token_id").reset_index(drop=True))


def _say(tokens: pd.DataFrame, drawn: pd.DataFrame, marked: pd.DataFrame, cells: Cells) -> str:
    """Account for every token."""
    said = f"{plural(len(drawn), 'token')}: {len(marked):,} drawn one by one, {cells.total:,} counted in cells"
    left_out = len(tokens) - len(drawn)
    return f"{said}; {left_out:,} without a finite number left out" if left_out else said


def _across(cells: Cells, theme: Theme) -> dict[str, object]:
    left, right = cells.across[0], cells.across[-1]
    shares = [power for power in range(-60, 1) if left <= power * DECADE <= right]
    shown = shares[::-1][:: max(1, math.ceil(len(shares) / 8))]
    return {
        **look.axis(title="likelihood: geometric mean of the two probabilities", theme=theme),
        "range": [left, right],
        "tickvals": [power * DECADE for power in shown],
        "ticktext": [_share(power) for power in shown],
    }


def _up(cells: Cells, theme: Theme) -> dict[str, object]:
    top = cells.up[-1]
    ratios = _ratios(top)
    return {
        **look.axis(title="", theme=theme),
        "range": [-top, top],
        "tickvals": [sign * math.log(ratio) for ratio in ratios for sign in (1, -1)] + [0],
        "ticktext": [f"{count_text(ratio)}×" for ratio in ratios for _ in (1, -1)] + ["equal"],
    }


def _ratios(top: float) -> list[float]:
    """Round ratios up to exp(top) for the ticks, about four."""
    decades = top / DECADE
    if decades < 0.9:
        return [ratio for ratio in (1.25, 1.5, 2, 3, 5) if math.log(ratio) <= top]
    if decades < 2:
        return [ratio for ratio in (2, 5, 10, 20, 50) if math.log(ratio) <= top]
    step = math.ceil(decades / 5)
    return [10.0**power for power in range(step, int(decades) + 1, step)]


def _share(power: int) -> str:
    return f"{100 * 10.0**power:g} %" if power >= -5 else f"10<sup>{power}</sup>".replace("-", "−")


def _cell_map(cells: Cells, name: str, color: str, part: slice, theme: Theme) -> go.Heatmap:
    """The cells of one half; their color grows with the logarithm of their count."""
    counts = cells.counts[part]
    with np.errstate(divide="ignore"):
        shade = np.where(counts > 0, np.log1p(counts), np.nan)
    return go.Heatmap(
        name=name,
        z=shade,
        x=cells.across,
        y=cells.up[part.start : part.stop + 1],
        zmin=0,
        zmax=math.log1p(max(int(cells.counts.max(initial=0)), 1)),
        colorscale=[[0, look.mix(color, theme.page, 0.1)], [1, look.mix(color, theme.page, 0.75)]],
        showscale=False,
        hovertext=cells.hovers[part],
        hoverinfo="text",
        hoverongaps=False,
        xgap=1,
        ygap=1,
    )


def _marks(marked: pd.DataFrame, side: _Side, theme: Theme) -> go.Scatter:
    signs = np.sign(marked["difference"].to_numpy(dtype=float))
    # A token that both want alike stands with the first: it has to stand somewhere.
    mine = where(marked, signs >= 0 if side.sign > 0 else signs < 0)
    return go.Scatter(
        name=plain(side.name),
        x=column(mine, "likelihood") or [None],
        y=column(mine, "difference") or [None],
        mode="markers",
        marker={"symbol": side.symbol, "size": 7, "color": side.color, "line": {"color": theme.page, "width": 0.7}},
        customdata=column(mine, "token_id"),
        hovertext=list(_hovers(mine, side)),
        hoverinfo="text",
        selected={"marker": {"color": theme.accent}},
        unselected={"marker": {"opacity": 1}},
    )


def _name_half(side: _Side) -> dict[str, object]:
    """Write above the plot what a half means."""
    upper = side.sign > 0
    return {
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "yshift": LINE if upper else 0,
        "text": f"{'● up' if upper else '◆ down'}: more likely with <b>{plain(shorten(side.name, 30))}</b>",
        "showarrow": False,
        "font": {"size": 13, "color": side.color},
    }


def _hovers(mine: pd.DataFrame, side: _Side) -> Iterator[str]:
    for token, token_id, kind, first, second, difference in columns(
        mine, "token", "token_id", "kind", "first", "second", "difference"
    ):
        yield (
            f"<b>{plain(token)}</b>, id {token_id}, {kind}"
            f"<br>first {plain(percent_text(math.exp(first)))}, "
            f"second {plain(percent_text(math.exp(second)))}"
            f"<br>{_ratio_text(abs(difference), side.name)}"
        )


def _ratio_text(logarithm: float, name: str) -> str:
    ratio = math.exp(min(logarithm, 700.0))
    if ratio < 1.005:
        return "as likely with both"
    times = f"{ratio:.3g}" if ratio < 1000 else count_text(ratio)
    return f"{times} times as likely with {plain(shorten(name, 40))}"


def _add_labels(
    figure: go.Figure,
    marked: pd.DataFrame,
    cells: Cells,
    *,
    sides: tuple[_Side, _Side],
    pins: Sequence[int],
    theme: Theme,
) -> None:
    """Write what tokens are, where the text touches no other label and no mark."""
    chosen = _to_label(marked, pins)
    rest = where(marked, ~marked["token_id"].isin(column(chosen, "token_id")))
    write_labels(
        figure,
        [
            NamedMark(token, x, y, (sides[0] if y >= 0 else sides[1]).color)
            for token, x, y in columns(chosen, "token", "likelihood", "difference")
        ],
        columns(rest, "likelihood", "difference"),
        across=(cells.across[0], cells.across[-1]),
        up=(-cells.up[-1], cells.up[-1]),
        height=HEIGHT,
        radius=RADIUS,
        theme=theme,
    )


def _to_label(marked: pd.DataFrame, pins: Sequence[int]) -> pd.DataFrame:
    """Pins, then in turn the next most contrasted of each text and the next most likely."""
    ranked = [
        where(marked, marked["difference"] > 0).nlargest(LABELS // 3, "difference"),
        where(marked, marked["difference"] < 0).nsmallest(LABELS // 3, "difference"),
        marked.nlargest(LABELS // 3, "likelihood"),
    ]
    turns = pd.concat([frame.assign(turn=range(len(frame))) for frame in ranked])
    in_turn = pd.DataFrame(turns).sort_values("turn", kind="stable").drop(columns="turn")
    pinned = where(marked, marked["token_id"].isin(list(pins)))
    return pd.DataFrame(pd.concat([pinned, in_turn]).drop_duplicates("token_id"))


def names_of(result: Contrast) -> tuple[str, str]:
    """What tells the two texts apart, without the punctuation at its end."""
    first, second = differing_words(result.first_text, result.second_text)
    return first.rstrip(ENDS) or first, second.rstrip(ENDS) or second


def figure(result: Contrast, *, name: str, pins: Sequence[int] = (), theme: Theme = LIGHT) -> go.Figure:
    """Draw the result's main figure: likelihood against difference for the whole vocabulary.

    Args:
        name: Of the checkpoint.
        pins: Tokens that are named in any case, by id.
    """
    names = names_of(result)
    title = f"{name}: {names[0]} versus {names[1]}"
    return contrast_scatter(result.tokens, names=names, title=title, floor=result.floor, pins=pins, theme=theme)
