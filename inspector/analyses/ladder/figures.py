"""A hidden state against its top tokens: cosine, norm and dot product on one plot."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.ladder.result import Climb
from inspector.plotting import theme as look
from inspector.plotting.frames import column, columns, where
from inspector.plotting.labels import NamedMark, write_labels
from inspector.plotting.ranks import SYMBOLS, rank_lines
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain

HEIGHT, TOP, FOOT = 430, 8, 90  # pixels below the title, and of them those beside the plot
WINNER = 13  # pixels of a mark that a step ranks first
COMPARED = ("cosine", "dot", "logits")  # rungs whose winners are marked
NAMED = 18  # tokens whose text is written
CURVE_POINTS = 80


def geometry_plot(
    geometry: pd.DataFrame,
    ranks: pd.DataFrame,
    *,
    hidden_norm: float,
    title: str,
    subtitle: str = "",
    theme: Theme = LIGHT,
) -> go.Figure:
    """Draw tokens by their cosine with a hidden state and by the norm of their embedding.

    On each curve the dot product |h| |e| cos is one number: a token further up needs less cosine
    for it.

    Args:
        geometry: `Climb.geometry`: token, token_id, norm, cosine, dot, ...; without NaN in cosine.
        ranks: `Climb.ranks`: token_id, rung, rank (0 = best), ...
        hidden_norm: |h|, above 0.

    Returns:
        One trace for each set of rungs that rank a token first, the curves below them.
    """
    above = look.title_height(title, subtitle)
    cosines, norms = _limits(column(geometry, "cosine")), _limits(column(geometry, "norm"))
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=HEIGHT + above,
        xaxis={**look.axis(title="cosine with the hidden state", theme=theme), "range": cosines},
        yaxis={**look.axis(title="norm of the embedding", theme=theme), "range": norms},
        legend={"orientation": "h", "x": 0, "y": -0.16, "yanchor": "top", "font": {"size": 13, "color": theme.ink}},
        margin={"t": above + TOP, "r": 60, "b": FOOT},
        hovermode="closest",
    )
    for dot in dot_levels(geometry):
        _add_curve(figure, dot, hidden_norm, cosines=cosines, norms=norms, theme=theme)
    firsts = first_by(ranks)
    groups: dict[str, list[int]] = {}
    for index, pinned in columns(geometry, "token_id", "pinned"):
        name = f"first by {' and '.join(firsts[index])}" if index in firsts else ("pinned" if pinned else "others")
        groups.setdefault(name, []).append(index)
    for number, name in enumerate(sorted(groups, key=lambda name: (name == "others", name))):
        rows = where(geometry, geometry["token_id"].isin(groups[name]))
        _add_tokens(figure, rows, name, number=number, theme=theme)
    marked = set(firsts) | set(column(where(geometry, geometry["pinned"]), "token_id"))
    shown = _named(ranks, set(firsts)) | marked
    rows = columns(geometry, "token", "cosine", "norm", "token_id")
    write_labels(
        figure,
        [
            NamedMark(token, x, y, theme.ink if index in marked else theme.muted)
            for token, x, y, index in sorted(rows, key=lambda row: row[3] not in marked)
            if index in shown
        ],
        [(x, y) for _, x, y, index in rows if index not in shown],
        across=cosines,
        up=norms,
        height=HEIGHT - TOP - FOOT,
        radius=WINNER / 2,
        theme=theme,
    )
    return figure


def first_by(ranks: pd.DataFrame) -> dict[int, list[str]]:
    """Tokens that cosine, dot product or logits rank first -> those rungs, in this order."""
    best = where(ranks, ranks["rank"] == 0)
    firsts: dict[int, list[str]] = {}
    for rung in COMPARED:
        for index, at in columns(best, "token_id", "rung"):
            if at == rung:
                firsts.setdefault(index, []).append(rung)
    return firsts


def dot_levels(geometry: pd.DataFrame) -> list[float]:
    """Dot products that get a curve: the largest of the tokens, and halves of it."""
    largest = max(column(geometry, "dot"), default=0.0)
    return [largest, largest * 0.75, largest * 0.5, largest * 0.25] if largest > 0 else []


def _limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    edge = 0.1 * (high - low) or 0.1 * abs(high) or 0.1
    return low - edge, high + 1.5 * edge


def _add_curve(
    figure: go.Figure, dot: float, hidden_norm: float, *, cosines: Sequence[float], norms: Sequence[float], theme: Theme
) -> None:
    x = np.linspace(max(cosines[0], 1e-3), cosines[1], CURVE_POINTS)
    y = dot / (hidden_norm * x)
    inside = (y >= norms[0]) & (y <= norms[1])
    if not inside.any():
        return
    x, y = x[inside], y[inside]
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": theme.muted, "width": 1, "dash": "dot"},
            hoverinfo="skip",
            showlegend=False,
            name=f"h·e = {dot:.3g}",
        )
    )
    figure.add_annotation(
        x=float(x[-1]),
        y=float(y[-1]),
        text=f"h·e = {dot:.3g}",
        showarrow=False,
        xanchor="left",
        yanchor="bottom",
        font={"size": 11, "color": theme.muted},
    )


def _named(ranks: pd.DataFrame, firsts: set[int]) -> set[int]:
    """Tokens whose text is written: winners, and the best of any step."""
    best = where(ranks, ranks["rank"] < NAMED)
    order = sorted(columns(best, "rank", "token_id"))
    return firsts | set(list(dict.fromkeys(index for _, index in order))[:NAMED])


def _add_tokens(figure: go.Figure, rows: pd.DataFrame, name: str, *, number: int, theme: Theme) -> None:
    quiet = name == "others"
    figure.add_trace(
        go.Scatter(
            name=name,
            x=column(rows, "cosine"),
            y=column(rows, "norm"),
            mode="markers",
            marker={
                "symbol": "circle-open" if quiet else SYMBOLS[number % len(SYMBOLS)],
                "size": 8 if quiet else WINNER,
                "color": theme.muted if quiet else theme.groups[number % len(theme.groups)],
            },
            hovertext=[
                f"<b>{plain(token)}</b><br>cosine {cosine:.4f}<br>norm {norm:.4f}<br>h·e = {dot:.4f}"
                for token, cosine, norm, dot in columns(rows, "token", "cosine", "norm", "dot")
            ],
            hoverinfo="text",
        )
    )


def figure(result: Climb, *, name: str, ids: Collection[int] | None = None, theme: Theme = LIGHT) -> go.Figure:
    """Draw the result's main figure: the ranks of tokens from step to step, those of pinned tokens first, by id.

    Args:
        name: Of the checkpoint.
        ids: Which tokens; None: the best ones.
    """
    ids = _named(result.ranks, set(first_by(result.ranks))) if ids is None else ids
    pinned = sorted(column(where(result.geometry, result.geometry["pinned"]), "token_id"))
    order = {token_id: place for place, token_id in enumerate([*pinned, *(each for each in ids if each not in pinned)])}
    ranks = where(result.ranks, result.ranks["token_id"].isin([*ids]))
    return rank_lines(
        ranks.sort_values("token_id", key=lambda column: column.map(order), kind="stable"),
        along="rung",
        stops=result.rungs,
        labels=result.rungs,
        title=f"Token ranks after each step of the head, {name}",
        subtitle=f"layer {result.layers[result.layer]}, position {result.position} ({result.token})",
        theme=theme,
    )
