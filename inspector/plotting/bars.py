"""Bars one above the other, each with its name before it and its number behind it."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.theme import Theme

LEAST = 64  # pixels of the drawing below which Plotly takes room from the margins


def bar_rows(
    lengths: Sequence[float],
    *,
    names: Sequence[str],
    texts: Sequence[str],
    hovers: Sequence[str],
    measure: str,
    tickformat: str,
    title: str,
    subtitle: str,
    pitch: int,
    size: int,
    room: int,
    theme: Theme,
) -> go.Figure:
    """Draw bars from top to bottom in their order, at y = 0, 1, ...

    Args:
        lengths: Of the bars, not negative.
        names: Of the bars; already short and safe for Plotly. Two may be the same.
        texts: What stands behind each bar; safe for Plotly.
        hovers: What is told of each bar; safe for Plotly.
        tickformat: Of the numbers along the axis, as d3 writes it.
        title: Of the figure, plain text with the checkpoint's name.
        pitch: Pixels from bar to bar.
        size: Of the names' letters in pixels.
        room: Pixels at the right for the longest bar's text.

    Returns:
        A figure with one trace.
    """
    count = len(lengths)
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=look.title_height(title, subtitle) + max(pitch * count, LEAST) + 58,
        xaxis={
            **look.axis(title=measure, theme=theme),
            "range": [0, max(lengths, default=0.0) * 1.02 or 1.0],
            "nticks": 6,
            "tickformat": tickformat,
        },
        yaxis={
            **look.axis(title="", theme=theme, grid=False),
            "range": [count - 0.5, -0.5],
            "tickvals": list(range(count)),
            "ticktext": list(names),
            "tickfont": {"size": size, "color": theme.ink},
        },
        bargap=0.28,
        margin={"r": room},
        dragmode=False,
    )
    figure.add_trace(
        go.Bar(
            orientation="h",
            y=list(range(count)),
            x=list(lengths),
            text=[f" {text}" for text in texts],
            textposition="outside",
            textfont={"size": 13, "color": theme.ink},
            cliponaxis=False,
            marker={"color": theme.groups[1]},
            hovertext=list(hovers),
            hoverinfo="text",
        )
    )
    return figure
