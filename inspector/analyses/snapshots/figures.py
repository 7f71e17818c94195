"""What a run's snapshots say over training steps: lines of numbers, rows of verdicts."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.frames import column, columns, where
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain, shorten, shorten_middle

HEIGHT = 400
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")  # told apart without color
MARKED = 40  # snapshots up to which each is a mark
TICKS = 12  # names along the axis
ROW = 26
LABEL = 44  # characters of a row's name
# What a snapshot says in one word -> sign, and the place of its color in `Theme.groups`.
SIGNS = {
    "ok": ("✓", 2),
    "warn": ("!", 4),
    "fail": ("✗", 0),
    "not checked": ("?", None),
    "tied": ("=", 2),
    "equal copies": ("≈", 4),
    "diverged": ("≠", 1),
    "declared only": ("✗", 0),
    "alias only": ("✗", 0),
}


def step_lines(
    lines: pd.DataFrame, *, measure: str, evenly: bool = False, title: str, subtitle: str = "", theme: Theme = LIGHT
) -> go.Figure:
    """Draw numbers over training steps.

    Args:
        lines: A row a point, in the order of the run: place (from 0), snapshot, step (missing
            where nobody knows it), line, value (NaN: a gap).
        evenly: True: snapshots at equal distances, whatever their steps; so they are drawn, too,
            where a step is missing.

    Returns:
        One trace for each line that has a number; each point tells its snapshot.
    """
    by_step = not evenly and has_steps(lines)
    top = look.title_height(title, subtitle)
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=top + HEIGHT,
        xaxis=_axis(lines, by_step=by_step, theme=theme),
        yaxis=look.axis(title=measure, theme=theme),
        hovermode="closest",
        legend=look.legend_below(theme),
        margin={"t": top + 12, "b": 96, "r": 24},
    )
    for number, name in enumerate(dict.fromkeys(column(lines, "line"))):
        own = where(lines, lines["line"] == name)
        if all(pd.isna(value) for value in column(own, "value")):
            continue
        color = theme.groups[number % len(theme.groups)]
        figure.add_trace(
            go.Scatter(
                name=plain(shorten(name, LABEL)),
                x=column(own, "step" if by_step else "place"),
                y=column(own, "value"),
                mode="lines+markers" if len(own) <= MARKED else "lines",
                line={"color": color, "width": 2.4, "dash": DASHES[number % len(DASHES)]},
                marker={"size": 7, "color": color},
                cliponaxis=False,
                connectgaps=False,
                hovertext=[
                    f"<b>{plain(name)}</b><br>{plain(snapshot)}<br>{measure} {value:.4g}"
                    for snapshot, value in columns(own, "snapshot", "value")
                ],
                hoverinfo="text",
            )
        )
    return figure


def verdict_grid(cells: pd.DataFrame, *, title: str, subtitle: str = "", theme: Theme = LIGHT) -> go.Figure:
    """Draw what was said of each thing at each snapshot, a sign and its color.

    Args:
        cells: place (from 0), snapshot, step, row (what it is said of), verdict (one of SIGNS),
            detail (a sentence).

    Returns:
        Things from top to bottom, snapshots from left to right in equal distances; an empty place
        where a snapshot has no such thing.
    """
    down = list(dict.fromkeys(column(cells, "row")))
    rows = {name: number for number, name in enumerate(down)}
    top = look.title_height(title, subtitle) + 8
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=top + ROW * max(len(down), 1) + 128,
        xaxis=_axis(cells, by_step=False, theme=theme) | {"showgrid": False},
        yaxis={
            **look.axis(title="", theme=theme, grid=True),
            "tickvals": list(range(len(down))),
            "ticktext": [plain(shorten_middle(name, LABEL)) for name in down],
            "tickfont": {"size": 12, "color": theme.ink},
            "range": [len(down) - 0.5, -0.5],
        },
        legend={
            "orientation": "h",
            "x": 0,
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "font": {"size": 13, "color": theme.ink},
        },
        margin={"t": top, "b": 120},
        dragmode=False,
    )
    for verdict, (sign, group) in SIGNS.items():
        own = where(cells, cells["verdict"] == verdict)
        if own.empty:
            continue
        color = theme.muted if group is None else theme.groups[group]
        figure.add_trace(
            go.Scatter(
                name=f"{sign} {verdict}",
                x=column(own, "place"),
                y=[rows[name] for name in column(own, "row")],
                mode="markers+text",
                text=sign,
                textfont={"size": 12, "color": look.ink_on(color)},
                marker={"symbol": "square", "size": 19, "color": color},
                hovertext=[
                    f"<b>{plain(shorten_middle(name, 90))}</b><br>{plain(snapshot)}<br>{verdict}"
                    f"<br>{plain(shorten(detail, 160))}"
                    for name, snapshot, detail in columns(own, "row", "snapshot", "detail")
                ],
                hoverinfo="text",
            )
        )
    return figure


def has_steps(frame: pd.DataFrame) -> bool:
    """Whether the snapshots can be drawn over steps: each has one, and no two the same."""
    steps = column(frame.drop_duplicates("place"), "step")
    return bool(steps) and not any(pd.isna(step) for step in steps) and len(set(steps)) == len(steps)


def _axis(frame: pd.DataFrame, *, by_step: bool, theme: Theme) -> dict[str, Any]:
    if by_step:
        return {**look.axis(title="training step", theme=theme), "separatethousands": True}
    places = frame.drop_duplicates("place").sort_values("place")
    stride = max(1, -(-len(places) // TICKS))
    shown = places.iloc[::stride]
    last = max([*column(places, "place"), 0])
    return {
        **look.axis(title="snapshot", theme=theme),
        "tickvals": column(shown, "place"),
        "ticktext": [_label(*each) for each in columns(shown, "snapshot", "step")],
        "tickangle": -40 if len(shown) > 6 else 0,
        "range": [-0.5, last + 0.5],
    }


def _label(snapshot: str, step: Any) -> str:
    return plain(shorten_middle(snapshot, 18)) if pd.isna(step) else f"{int(step):,}"
