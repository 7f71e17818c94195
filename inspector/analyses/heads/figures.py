"""What the question-answering head answers: every span as a heat map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain, shorten

CELL = 22  # pixels of a row
LOW, HIGH = 300, 760  # pixels of the map
NAMED = 60  # tokens that fit beside an axis
LETTERS = 14


def span_heatmap(
    grid: np.ndarray,
    *,
    positions: Sequence[int],
    tokens: Sequence[str],
    best: tuple[int, int],
    title: str,
    subtitle: str = "",
    theme: Theme = LIGHT,
) -> go.Figure:
    """Draw the score of every span, start downward and end to the right, the best one outlined.

    Args:
        grid: `AnswerSpan.grid`, (starts, ends): scores in 0..1, NaN where a span is not legal.
        positions: Of the rows, which are those of the columns.
        tokens: One a row.
        best: Start and end position of the best span.

    Returns:
        A figure with the trace "spans" over places 0, 1, ... and the trace "best" on top.
    """
    count = len(positions)
    labels = [f"{plain(shorten(token, LETTERS))} {place}" for token, place in zip(tokens, positions, strict=True)]
    shown = [place for place in range(count) if place % (1 + count // NAMED) == 0]
    ticks = {"tickvals": shown, "ticktext": [labels[place] for place in shown]}
    edges = [-0.5, count - 0.5]
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=look.title_height(title, subtitle) + min(max(count * CELL, LOW), HIGH) + 110,
        xaxis={
            **look.axis(title="end", theme=theme, grid=False),
            **ticks,
            "range": edges,
            "tickangle": -45 if count > 6 else 0,
        },
        yaxis={**look.axis(title="start", theme=theme, grid=False), **ticks, "range": edges[::-1]},
        dragmode="zoom",
        showlegend=False,
    )
    figure.add_trace(
        go.Heatmap(
            name="spans",
            z=grid,
            zmin=0,
            xgap=1 if count <= NAMED else 0,
            ygap=1 if count <= NAMED else 0,
            colorscale=theme.scale,
            colorbar={
                "title": {"text": "score", "font": {"color": theme.muted}},
                "tickfont": {"color": theme.muted},
                "tickformat": ".1%",
                "thickness": 10,
                "outlinewidth": 0,
            },
            customdata=np.array([[f"{start} to {end}" for end in labels] for start in labels], dtype=object)
            if count <= NAMED
            else None,
            hovertemplate="%{customdata}<br>score %{z:.3%}<extra></extra>"
            if count <= NAMED
            else "start %{y}, end %{x}<br>score %{z:.3%}<extra></extra>",
            hoverongaps=False,
        )
    )
    figure.add_trace(
        go.Scatter(
            name="best",
            x=[positions.index(best[1])],
            y=[positions.index(best[0])],
            mode="markers",
            marker={"symbol": "square-open", "size": 16, "color": theme.accent, "line": {"width": 3}},
            hoverinfo="skip",
        )
    )
    return figure
