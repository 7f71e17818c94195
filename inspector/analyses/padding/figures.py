"""What pushes on the padding row: its gradient by path, beside the controls."""

from __future__ import annotations

import math

import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.padding.result import AS_IT_IS, FRESH, UNTIED
from inspector.plotting import theme as look
from inspector.plotting.frames import columns, where
from inspector.plotting.theme import LIGHT, Theme

BAR = 52  # pixels from bar to bar
TEXT = 72  # pixels at the right for the longest bar's text
ROOM = 0.3  # powers of ten left of the smallest bar and right of the largest
# label, experiment, column, color of the theme's groups
BARS = (
    ("this checkpoint:<br>through the look-up", AS_IT_IS, "input_path", 1),
    ("this checkpoint:<br>through the softmax", AS_IT_IS, "output_path", 0),
    ("the same, untied:<br>both paths", UNTIED, "total", 1),
    ("control, a fresh random<br>model: both paths", FRESH, "total", 5),
)


def gradient_bars(experiments: pd.DataFrame, *, row: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw the gradient on one row by path, on a logarithmic scale.

    Args:
        experiments: `PaddingRow.experiments`.
        row: What it is, such as "[PAD] of demo-bert".

    Returns:
        A figure with one bar each for the look-up, the softmax, and the controls that there are. A
        gradient of exactly 0 has no bar: a ring at the left edge and "exactly 0" stand for it.
    """
    bars = _bars(experiments)
    title, subtitle = f"Gradient on {row}", "one backward pass on the sentences, by path"
    height = look.title_height(title, subtitle) + BAR * max(len(bars), 1) + 64
    positive = [value for _, value, _ in bars if value > 0 and math.isfinite(value)]
    low = math.floor(math.log10(min(positive, default=0.1)) - ROOM)
    high = math.log10(max(positive, default=1.0))
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=height,
        xaxis={
            **look.axis(title="norm of the gradient, logarithmic", theme=theme),
            "type": "log",
            "range": [low, high + max(0.06 * (high - low), ROOM)],
            "exponentformat": "e",
            "dtick": max(1, math.ceil((high - low) / 4)),
        },
        yaxis={
            **look.axis(title="", theme=theme, grid=False),
            "range": [len(bars) - 0.5, -0.5],
            "tickvals": list(range(len(bars))),
            "ticktext": [label for label, *_ in bars],
            "tickfont": {"size": 13, "color": theme.ink},
        },
        bargap=0.36,
        margin={"r": TEXT},
        dragmode=False,
        showlegend=False,
    )
    left = 10.0**low
    figure.add_trace(
        go.Bar(
            name="gradient",
            orientation="h",
            y=list(range(len(bars))),
            base=left,
            x=[max(value - left, 0) if value > 0 else 0 for _, value, _ in bars],
            marker={"color": [theme.groups[color] for *_, color in bars]},
            text=[f" <b>{_exact(value)}</b>" for _, value, _ in bars],
            textposition="outside",
            textfont={"size": 14, "color": theme.ink},
            cliponaxis=False,
            hovertext=[f"{label}<br>{value!r}" for label, value, _ in bars],
            hoverinfo="text",
        )
    )
    zeros = [place for place, (_, value, _) in enumerate(bars) if value == 0]
    figure.add_trace(
        go.Scatter(
            name="exactly 0",
            x=[left] * len(zeros),
            y=zeros,
            mode="markers",
            marker={"symbol": "circle-open", "size": 11, "color": theme.ink, "line": {"width": 2}},
            cliponaxis=False,
            hoverinfo="skip",
        )
    )
    return figure


def _bars(experiments: pd.DataFrame) -> list[tuple[str, float, int]]:
    """Label, norm and color of each bar."""
    found = []
    padding = where(experiments, experiments["role"] == "as padding")
    for label, experiment, column, color in BARS:
        for (value,) in columns(where(padding, padding["experiment"] == experiment), column):
            found.append((label, float(value), color))
    return found


def _exact(value: float) -> str:
    return "  exactly 0" if value == 0 else f"{value:.3g}"
