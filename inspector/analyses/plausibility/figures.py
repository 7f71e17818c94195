"""How plausible every token is in its place: the sentence itself, colored by surprisal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.plausibility.result import Plausibility
from inspector.analyses.plausibility.words import subtitle
from inspector.plotting import theme as look
from inspector.plotting.frames import columns
from inspector.plotting.lettering import BoxPlace, flow, text_width
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import percent_text, plain, shorten

WIDTH = 640  # pixels of a line on a narrow page; wider ones stretch it
LINE, BOX = 53, 45  # pixels from line to line, and of a box
SIZE, SMALL = 15, 11  # of a token and of its number
GAP, JOINT, PADDING, CORNER = 5, 1, 14, 5
LETTERS = 40  # of a token
LEAST_TOP = 8.0  # bits: sentences without surprises keep pale colors
BAR = 74  # pixels for the color bar
COLUMNS = ("position", "token", "judged", "word", "probability", "rank", "best_token", "best_probability", "bits")


@dataclass(frozen=True, slots=True)
class _Token:
    """A row of `Plausibility.tokens`."""

    position: int
    token: str
    judged: bool
    word: int
    probability: float
    rank: int
    best: str
    best_probability: float
    bits: float

    @property
    def colored(self) -> bool:
        return self.judged and math.isfinite(self.bits)


def plausibility_strip(
    tokens: pd.DataFrame, *, title: str, subtitle: str = "", theme: Theme = LIGHT, width: int = WIDTH
) -> go.Figure:
    """Draw a text as boxes with its tokens, the more surprising the stronger the color.

    Args:
        tokens: `Plausibility.tokens`; pieces of one word stand side by side.
        width: Pixels of a line.

    Returns:
        A figure with the trace "judged", then "not judged"; one bar a token, with customdata
        position.
    """
    rows = [_Token(*row) for row in columns(tokens, *COLUMNS)]
    texts = [_shown(row, rows[at - 1] if at else None) for at, row in enumerate(rows)]
    numbers = [f"{row.bits:.1f}" if row.colored else "" for row in rows]
    widths = [
        min(PADDING + max(text_width(text, SIZE), text_width(number, SMALL)), width)
        for text, number in zip(texts, numbers, strict=True)
    ]
    groups = [("word", row.word) if row.word >= 0 else ("alone", row.position) for row in rows]
    places = flow(widths, groups, width=width, gap=GAP, joint=JOINT)
    lines = max((place.line for place in places), default=0) + 1
    above = look.title_height(title, subtitle)
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=above + LINE * lines + BAR,
        xaxis=look.hidden_axis(-1, width + 1),
        yaxis=look.hidden_axis(lines - 0.5, -0.5),
        margin={"b": BAR},
        barmode="overlay",
        showlegend=False,
        clickmode="event+select",
        dragmode=False,
    )
    for judged in (True, False):
        chosen = [at for at, row in enumerate(rows) if row.colored == judged]
        figure.add_trace(
            _bars(
                "judged" if judged else "not judged",
                [rows[at] for at in chosen],
                [_lettering(texts[at], numbers[at]) for at in chosen],
                [places[at] for at in chosen],
                [widths[at] for at in chosen],
                theme=theme,
            )
        )
    figure.update_traces(marker=_surprise(rows, theme), textfont={"color": theme.ramp_ink}, selector={"name": "judged"})
    figure.update_traces(
        marker={
            "color": look.alpha(theme.surface, 0.5),
            "line": {"color": theme.edge, "width": 1},
            "cornerradius": CORNER,
        },
        textfont={"color": theme.muted},
        selector={"name": "not judged"},
    )
    return figure


def surprisal_colors(bits: Sequence[float], *, theme: Theme = LIGHT) -> list[str]:
    """Give the colors that a strip of these tokens has, for the same text elsewhere.

    Args:
        bits: Surprisal of every judged token, finite, at least 0.
        theme: Colors; its `ramp_ink` is readable on all of them.
    """
    colors, steps = [], len(theme.ramp) - 1
    for value in bits:
        place = min(max(value / _top(bits), 0.0), 1.0) * steps
        low = min(int(place), steps - 1)
        colors.append(look.mix(theme.ramp[low + 1], theme.ramp[low], place - low))
    return colors


def _top(bits: Sequence[float]) -> float:
    return max(LEAST_TOP, math.ceil(max(bits, default=0.0)))


def _shown(row: _Token, before: _Token | None) -> str:
    """A token as part of a sentence: the box's place says where words begin."""
    joins = before is not None and row.word >= 0 and row.word == before.word
    text = row.token.removeprefix("##") if joins else row.token.removeprefix("␣")
    return shorten(text or row.token, LETTERS)


def _lettering(text: str, number: str) -> str:
    return f'{plain(text)}<br><span style="font-size:{SMALL}px">{number}</span>' if number else (plain(text))


def _bars(
    name: str, rows: list[_Token], texts: list[str], places: list[BoxPlace], widths: list[float], *, theme: Theme
) -> go.Bar:
    return go.Bar(
        name=name,
        orientation="h",
        base=[place.left for place in places],
        x=widths,
        y=[place.line for place in places],
        width=BOX / LINE,
        text=texts,
        textposition="inside",
        insidetextanchor="middle",
        constraintext="none",
        textangle=0,
        textfont={"size": SIZE},
        customdata=[row.position for row in rows],
        hovertext=[_hover(row) for row in rows],
        hoverinfo="text",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _hover(row: _Token) -> str:
    head = f"<b>{plain(row.token)}</b>, position {row.position}"
    if not row.judged:
        return f"{head}<br>not judged: the model only reads it"
    if not row.colored:
        return f"{head}<br>probability 0: the model rules this token out"
    best = (
        "the most likely token here"
        if row.rank == 1
        else f"most likely: <b>{plain(row.best)}</b>, {plain(percent_text(row.best_probability))}"
    )
    return (
        f"{head}<br>probability {plain(percent_text(row.probability))}, rank {row.rank:,}"
        f"<br>surprisal {row.bits:.2f} bits<br>{best}"
    )


def _surprise(rows: list[_Token], theme: Theme) -> dict[str, object]:
    bits = [row.bits for row in rows if row.colored]
    return {
        "color": bits,
        "cmin": 0,
        "cmax": _top(bits),
        "colorscale": theme.scale,
        "showscale": bool(bits),
        "cornerradius": CORNER,
        "line": {"color": theme.edge, "width": 1},
        "colorbar": {
            "orientation": "h",
            "title": {
                "text": "surprisal in bits, 0 = certain",
                "side": "top",
                "font": {"size": 12, "color": theme.muted},
            },
            "tickfont": {"size": 12, "color": theme.muted},
            "thickness": 10,
            "len": 0.6,
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yanchor": "top",
            "ypad": 12,
            "outlinewidth": 0,
        },
    }


def figure(result: Plausibility, *, name: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw the result's main figure: the text, the more surprising the stronger the color."""
    title = f"{name}: how surprising is each token?"
    return plausibility_strip(result.tokens, title=title, subtitle=subtitle(result), theme=theme)
