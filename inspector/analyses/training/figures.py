"""Learning-rate schedules as lines."""

from __future__ import annotations

import math

import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import TrainingPlan
from inspector.plotting import theme as look
from inspector.plotting.frames import column
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain, plural

POINTS = 500  # of each line, evenly spread; turning points are always among them
HEIGHT = 420
DASHES = ("solid", "dash", "solid", "dot", "dashdot", "longdash")  # told apart without color


def schedule_lines(plan: TrainingPlan, choice: TrainingRequest, *, name: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw the learning-rate schedules over the updates; warm-up is marked.

    Args:
        plan: The answer.
        choice: The question.
        name: Of the checkpoint.

    Returns:
        One line a schedule, thinned to what can be seen: every drawn point is an update's own.
    """
    title = f"Learning rate of each update, {name}"
    subtitle = (
        f"{plural(plan.steps, 'update')}, highest rate {plan.learning_rate:g}, "
        f"{plural(choice.cycles, 'cosine cycle')}, power {choice.power:g}"
    )
    rates, warmup_steps = pd.DataFrame(plan.schedules), plan.warmup_steps
    drawn = rates.loc[drawn_steps(rates)]
    top = look.title_height(title, subtitle)
    highest = max(float(rates.max().max()), 1e-12)
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=top + HEIGHT,
        xaxis={
            **look.axis(title="update", theme=theme),
            "separatethousands": True,
            "range": [-0.01 * len(rates), 1.01 * len(rates)],
        },
        yaxis={
            **look.axis(title="learning rate", theme=theme),
            "exponentformat": "e",
            "range": [-0.03 * highest, 1.06 * highest],
        },
        hovermode="x unified",
        legend=look.legend_below(theme),
        margin={"t": top + 24, "b": 96},
    )
    if warmup_steps:
        ground = look.alpha(theme.muted, 0.1)
        figure.add_vrect(x0=0, x1=warmup_steps, fillcolor=ground, line_width=0, layer="below")
        figure.add_annotation(
            x=0,
            y=1,
            yref="paper",
            text=f"warm-up: {plural(warmup_steps, 'update')}",
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
            font={"size": 12, "color": theme.muted},
        )
    for number, schedule in enumerate(rates.columns):
        figure.add_trace(
            go.Scatter(
                name=plain(str(schedule).replace("_", " ")),
                x=drawn.index.tolist(),
                y=column(drawn, schedule),
                mode="lines" if len(drawn) > 1 else "markers",
                line={
                    "width": 2.4,
                    "color": theme.groups[number % len(theme.groups)],
                    "dash": DASHES[number % len(DASHES)],
                },
                hovertemplate="%{y:.4g}",
            )
        )
    return figure


def drawn_steps(rates: pd.DataFrame) -> list[int]:
    """Choose the rows to draw: evenly spread ones, the first, the last, and both sides of turns."""
    stride = max(1, math.ceil(len(rates) / POINTS))
    signs = (rates.diff() > 0).astype(int)
    turns = (signs.diff().abs() > 0).any(axis=1)
    around = turns | turns.shift(-1, fill_value=False) | turns.shift(-2, fill_value=False)
    chosen = set(range(0, len(rates), stride)) | {len(rates) - 1}
    return sorted(chosen | {int(place) for place in rates.index[around]})
