"""The flat map of the vocabulary as a Plotly figure, for a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.vocabulary_map import words
from inspector.analyses.vocabulary_map.result import Projection
from inspector.plotting import theme as look
from inspector.plotting.frames import column, columns, where
from inspector.plotting.kinds import KIND_STYLES
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import percent_text, plain, shorten

PLOT = 500  # pixels of the plot's shorter side, to keep labels apart
AROUND = ((48, -32), (48, 32), (-48, -32), (-48, 32), (0, -44), (0, 44), (80, 0), (-80, 0))


def projection_figure(
    points: pd.DataFrame, *, title: str, subtitle: str = "", axes: tuple[str, str] = ("", ""), theme: Theme = LIGHT
) -> go.Figure:
    """Draw the flat map for a report: the same marks as the vocabulary map of the pages.

    Args:
        points: `Projection.points`: token_id, token, x, y, norm, kind.
        axes: What x and y are, such as ("PC 1 (3.1 %)", "PC 2 (2.2 %)").

    Returns:
        A figure with one trace a kind, padding last, which is also ringed.
    """
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=640,
        xaxis={**look.axis(title=plain(axes[0]), theme=theme, grid=False), "showticklabels": False},
        yaxis={**look.axis(title=plain(axes[1]), theme=theme, grid=False), "showticklabels": False, "scaleanchor": "x"},
        legend={"itemsizing": "constant", "orientation": "h", "y": -0.06, "yanchor": "top"},
        hovermode="closest",
    )
    for kind, of_kind in _by_kind(points):
        style = KIND_STYLES[kind]
        figure.add_trace(
            go.Scattergl(
                name=f"{kind} ({len(of_kind):,})",
                x=of_kind["x"],
                y=of_kind["y"],
                mode="markers",
                marker={
                    "symbol": style.symbol,
                    "size": style.size,
                    "color": theme.kinds[kind],
                    "opacity": style.opacity,
                },
                customdata=column(of_kind, "token_id"),
                hovertext=_hovers(of_kind, kind),
                hoverinfo="text",
            )
        )
    _ring_padding(figure, points, theme=theme)
    _label(figure, points, theme=theme)
    return figure


def _by_kind(points: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the kinds that occur, in drawing order."""
    for kind in KIND_STYLES:
        of_kind = where(points, points["kind"] == kind)
        if len(of_kind):
            yield kind, of_kind


def _hovers(of_kind: pd.DataFrame, kind: str) -> list[str]:
    return [
        f"<b>{plain(token)}</b><br>id {token_id} · {kind}<br>norm {norm:.3f}"
        for token, token_id, norm in columns(of_kind, "token", "token_id", "norm")
    ]


def _ring_padding(figure: go.Figure, points: pd.DataFrame, *, theme: Theme) -> None:
    padding = where(points, points["kind"] == "padding")
    if not len(padding):
        return
    figure.add_trace(
        go.Scattergl(
            name="padding ring",
            x=padding["x"],
            y=padding["y"],
            mode="markers",
            marker={"symbol": "circle-open", "size": 28, "color": theme.ink, "line": {"width": 2}},
            hoverinfo="skip",
            showlegend=False,
        )
    )


def _label(figure: go.Figure, points: pd.DataFrame, *, theme: Theme) -> None:
    """Write special and padding tokens in boxes: text of scattergl vanishes under points."""
    labeled = [
        (token, kind, x, y)
        for kind, of_kind in reversed(list(_by_kind(points)))
        if len(of_kind) <= KIND_STYLES[kind].labels
        for x, y, token in columns(of_kind, "x", "y", "token")
    ]
    places = [(x, y) for _, _, x, y in labeled]
    if not labeled:
        return
    for (token, kind, x, y), (ax, ay) in zip(labeled, _offsets(points, places), strict=True):
        figure.add_annotation(x=x, y=y, ax=ax, ay=ay, **_box(token, kind, theme))


def _offsets(points: pd.DataFrame, places: list[tuple[float, float]]) -> list[tuple[int, int]]:
    """Choose for each label, in order, the place around its point that is farthest from others.

    Args:
        points: All points, which give the scale.
        places: x and y of the points that have a label.

    Returns:
        Pixels right and down from the point to the middle of its label.
    """
    spread = max(float(np.ptp(points[axis].to_numpy())) for axis in ("x", "y"))
    marks = [(PLOT * x / max(spread, 1e-9), -PLOT * y / max(spread, 1e-9)) for x, y in places]
    taken = list(marks)
    chosen = []
    for mark in marks:
        others = [place for place in taken if place != mark]
        best = max(AROUND, key=lambda offset: _distance(mark, offset, others))
        chosen.append(best)
        taken.append((mark[0] + best[0], mark[1] + best[1]))
    return chosen


def _distance(mark: tuple[float, float], offset: tuple[int, int], others: list[tuple[float, float]]) -> float:
    """Measure how far a label would be from its nearest neighbor; labels are wide, so x / 3."""
    x, y = mark[0] + offset[0], mark[1] + offset[1]
    return min((np.hypot((x - a) / 3, y - b) for a, b in others), default=0.0)


def _box(token: str, kind: str, theme: Theme) -> dict[str, Any]:
    return {
        "text": f"<b>{plain(shorten(token, 18))}</b>",
        "font": {"size": 13, "color": theme.kinds[kind]},
        "bgcolor": look.alpha(theme.page, 0.9),
        "bordercolor": theme.kinds[kind],
        "borderpad": 3,
        "arrowcolor": theme.kinds[kind],
        "arrowwidth": 1,
        "arrowhead": 0,
        "showarrow": True,
    }


def figure(result: Projection, *, name: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw the result's main figure: the points that it holds on its first two axes."""
    drawn = f", {len(result.points):,} of them drawn" if len(result.points) < result.rows else ""
    axes = [f"PC {place} ({percent_text(share)})" for place, share in enumerate(result.explained[:2], start=1)] or [
        "x",
        "y",
    ]
    return projection_figure(
        result.points,
        title=f"{words.made_by(result)} of {name}",
        subtitle=f"{result.rows:,} rows{drawn}; {words.kept(result)}",
        axes=(axes[0], axes[1]),
        theme=theme,
    )
