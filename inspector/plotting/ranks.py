"""Ranks of tokens over layers or over the steps of the ladder, as lines."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import pandas as pd
import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.frames import columns, where
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain, shorten

HEIGHT = 330
LABEL_PIXELS = 17  # that a line's name takes at the right
LETTERS = 14  # of a line's name
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "triangle-down")


def rank_lines(
    ranks: pd.DataFrame,
    *,
    along: str,
    stops: Sequence[Hashable],
    labels: Sequence[str],
    title: str,
    subtitle: str = "",
    theme: Theme = LIGHT,
) -> go.Figure:
    """Draw the rank of each token from stop to stop, on a logarithmic axis with 1 on top.

    Args:
        ranks: token, token_id, rank (0 = best), and the column that `along` names.
        along: "layer" or "rung".
        stops: Values of that column, in order.
        labels: What the axis says of each stop.

    Returns:
        One line a token, named where it ends, with a dash and symbols of its own.
    """
    place = {stop: at for at, stop in enumerate(stops)}
    drawn = where(ranks, ranks[along].isin(list(stops)))
    lines: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for index, token, stop, rank in columns(drawn, "token_id", "token", along, "rank"):
        lines.setdefault((index, token), []).append((place[stop], rank + 1))
    lowest = max((rank for line in lines.values() for _, rank in line), default=10)
    bottom = math.log10(max(lowest, 10)) + 0.12
    above = look.title_height(title, subtitle) + 14
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=HEIGHT + above,
        xaxis={
            **look.axis(title={"rung": "head step"}.get(along, along), theme=theme, grid=False),
            "tickvals": thinned(len(stops)),
            "ticktext": [plain(shorten(labels[at], 12)) for at in thinned(len(stops))],
            "range": [-0.15, len(stops) - 1 + 0.1],
        },
        yaxis={
            **look.axis(title="rank, 1 = best", theme=theme),
            "type": "log",
            "range": [bottom, -0.12],
            "dtick": 1,
            "tickformat": ",d",
        },
        margin={"t": above, "r": 132, "b": 60},
        hovermode="closest",
        showlegend=False,
    )
    for number, ((_, token), line) in enumerate(lines.items()):
        _add_line(figure, token, sorted(line), number=number, labels=labels, theme=theme)
    _name_ends(figure, lines, bottom, theme)
    return figure


def _add_line(
    figure: go.Figure, token: str, line: list[tuple[int, int]], *, number: int, labels: Sequence[str], theme: Theme
) -> None:
    figure.add_trace(
        go.Scatter(
            name=plain(token),
            x=[at for at, _ in line],
            y=[rank for _, rank in line],
            mode="lines+markers",
            line={
                "width": 2.2,
                "color": theme.groups[number % len(theme.groups)],
                "dash": DASHES[number // len(SYMBOLS) % len(DASHES)],
            },
            marker={"symbol": SYMBOLS[number % len(SYMBOLS)], "size": 8},
            hovertext=[f"<b>{plain(token)}</b>, {plain(labels[at])}: rank {rank:,}" for at, rank in line],
            hoverinfo="text",
        )
    )


def _name_ends(
    figure: go.Figure, lines: dict[tuple[int, str], list[tuple[int, int]]], bottom: float, theme: Theme
) -> None:
    """Write each token where its line ends, apart from its neighbors."""
    ends = [(math.log10(max(line)[1]), token, number) for number, ((_, token), line) in enumerate(lines.items())]
    step = LABEL_PIXELS * (bottom + 0.12) / (HEIGHT - 60)
    heights = spread([end for end, _, _ in sorted(ends)], step=step, last=bottom)
    for height, (_, token, number) in zip(heights, sorted(ends), strict=True):
        name_end(figure, token, height, number=number, theme=theme)


def name_end(figure: go.Figure, name: str, height: float, *, number: int, theme: Theme) -> None:
    """Write a line's name beside its end, in the line's color.

    Args:
        height: On the y axis; of a logarithmic one the logarithm.
        number: Of the line.
    """
    figure.add_annotation(
        x=1,
        xref="paper",
        xanchor="left",
        xshift=6,
        y=height,
        yanchor="middle",
        text=plain(shorten(name, LETTERS)),
        showarrow=False,
        font={"size": 13, "color": theme.groups[number % len(theme.groups)]},
    )


def spread(heights: Sequence[float], *, step: float, last: float) -> list[float]:
    """Move ascending heights as little downward as keeps them `step` apart, and none below `last`.

    Where they do not all fit, they stand closer.
    """
    step = min(step, last / max(len(heights) - 1, 1))
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + step) if placed else height)
    for at in range(len(placed) - 1, -1, -1):
        room = last - step * (len(placed) - 1 - at)
        placed[at] = min(placed[at], room)
    return placed


def thinned(count: int) -> list[int]:
    """Which of so many stops along an axis are labeled: up to 16, evenly spread."""
    return list(range(0, count, math.ceil(count / 16))) if count else []
