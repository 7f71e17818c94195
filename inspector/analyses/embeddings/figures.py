"""Norms of embedding rows: all of them at once, and padding's over training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.frames import column, columns, where
from inspector.plotting.kinds import KIND_STYLES
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain, shorten

BINS = 80
LABELS = 12  # special tokens that are written out; the others are ticks with a hover text
LENGTH = 16  # characters of a label
LANE = 0.085  # from one line of labels to the next, as a share of the highest bar
PLOT, LETTER = 460, 7.5  # pixels of the narrowest plot and of a letter: no labels overlap there


def norms_histogram(points: pd.DataFrame, *, name: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw how long the embedding's rows are, with padding and special tokens marked.

    Args:
        points: One row a token: token, token_id, norm, kind (one of `results.KINDS`).
        name: Of the checkpoint.

    Returns:
        A figure with bars of counts, then one trace of ticks for each of "special" and
        "padding" that occurs, with customdata token_id, above the bars.
    """
    norms = points["norm"].to_numpy(dtype=float)
    counts, edges = np.histogram(norms[np.isfinite(norms)], bins=BINS)
    marked = where(points, points["kind"].isin(["special", "padding"]) & np.isfinite(norms))
    marked = marked.sort_values("norm", ignore_index=True)
    lanes = _lanes(marked, float(edges[0]), float(edges[-1]))
    peak = max(int(counts.max()), 1)
    room = 1.1 + LANE * (max(lanes.values(), default=-1) + 1)
    figure = look.figure(
        f"Norms of the rows of {name}",
        f"{len(points):,} rows, special tokens labeled",
        theme=theme,
        height=400,
        xaxis=look.axis(title="norm of the embedding row", theme=theme, grid=False),
        yaxis={**look.axis(title="tokens", theme=theme), "range": [0, peak * room]},
        bargap=0.06,
        showlegend=False,
        clickmode="event+select",
        dragmode=False,
    )
    figure.add_trace(
        counted_bars("all tokens", counts, edges, "tokens<br>norm", {"color": theme.kinds["word"]}, theme=theme)
    )
    for kind in ("special", "padding"):
        of_kind = where(marked, marked["kind"] == kind)
        if len(of_kind):
            figure.add_trace(_ticks(of_kind, kind, peak, theme=theme))
    _write_labels(figure, marked, lanes, peak, theme=theme)
    finite = norms[np.isfinite(norms)]
    if len(finite):
        median = float(np.median(finite))
        mark_place(figure, median, f"median {median:.3f}", theme.ink, "left", height=peak * 0.06, top=peak, theme=theme)
    return figure


def counted_bars(
    name: str, counts: np.ndarray, edges: np.ndarray, of: str, marker: dict[str, Any], *, theme: Theme
) -> go.Bar:
    """Bars of a histogram; `of` is what the hover text says between a count and its edges."""
    return go.Bar(
        name=name,
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts,
        width=np.diff(edges),
        marker=marker | {"line": {"color": theme.page, "width": 0.5}},
        hovertext=[
            f"{count:,} {of} {low:.3f} to {high:.3f}"
            for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True)
        ],
        hoverinfo="text",
        unselected={"marker": {"opacity": 1}},
    )


def mark_place(
    figure: go.Figure, place: float, text: str, color: str, side: str, *, height: float, top: float | None, theme: Theme
) -> None:
    """Draw a dotted line up to `top`, and a text beside it; None: heights are shares of the plot."""
    yref = "paper" if top is None else "y"
    line = {"color": color, "width": 1.5, "dash": "dot"}
    figure.add_shape(type="line", x0=place, x1=place, y0=0, y1=top or 1, yref=yref, line=line)
    figure.add_annotation(
        x=place,
        y=height,
        yref=yref,
        text=text,
        font={"size": 12, "color": color},
        bgcolor=look.alpha(theme.page, 0.85),
        showarrow=False,
        xanchor=side,
        xshift=4 if side == "left" else -4,
    )


def pad_norm_curve(curve: pd.DataFrame, *, name: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw how padding's row grows while training goes on, against the median row.

    Args:
        curve: step, pad_norm, median_norm, by step.
        name: Of the checkpoint.

    Returns:
        A figure with one line for padding and one for the median row, named at their ends.
    """
    steps = column(curve, "step")
    figure = look.figure(
        f"Growth of the padding row while {name} was trained",
        "It starts at zero; only the tied output layer trains it, never a look-up",
        theme=theme,
        height=360,
        xaxis={
            **look.axis(title="training step", theme=theme, grid=False),
            "range": [min(steps, default=0), max(steps, default=1)],
        },
        yaxis={**look.axis(title="norm of the row", theme=theme), "rangemode": "tozero"},
        showlegend=False,
        hovermode="x unified",
        dragmode=False,
        margin={"r": 100},
    )
    for line, field, color, dash, symbol in _lines(theme):
        figure.add_trace(
            go.Scatter(
                name=line,
                x=curve["step"],
                y=curve[field],
                mode="lines+markers" if len(curve) <= 12 else "lines",
                line={"color": color, "width": 2.5, "dash": dash},
                marker={"symbol": symbol, "size": 8},
                cliponaxis=False,
                hovertemplate="%{y:.4f}",
            )
        )
    _name_ends(figure, curve, theme=theme)
    return figure


def _name_ends(figure: go.Figure, curve: pd.DataFrame, *, theme: Theme) -> None:
    """Write each line's name at its end, the upper one above and the lower one below."""
    if not len(curve):
        return
    ends = {name: column(curve, field)[-1] for name, field, *_ in _lines(theme)}
    upper = max(ends, key=lambda name: ends[name])
    for name, _, color, *_ in _lines(theme):
        figure.add_annotation(
            x=column(curve, "step")[-1],
            y=ends[name],
            text=f"<b>{name}</b><br>{ends[name]:.3f}",
            font={"size": 13, "color": color},
            align="left",
            showarrow=False,
            xanchor="left",
            xshift=8,
            yanchor="bottom" if name == upper else "top",
        )


def _lines(theme: Theme) -> tuple[tuple[str, str, str, str, str], ...]:
    """List name, column, color, dash and symbol of each line."""
    return (
        ("median row", "median_norm", theme.muted, "dash", "circle"),
        ("padding", "pad_norm", theme.kinds["padding"], "solid", "star"),
    )


def _labeled(marked: pd.DataFrame) -> list[int]:
    """Choose the rows that are written out: padding first, then the shortest and longest."""
    kinds = column(marked, "kind")
    padding = [row for row, kind in enumerate(kinds) if kind == "padding"][:LABELS]
    others = [row for row, kind in enumerate(kinds) if kind != "padding"]
    room = LABELS - len(padding)
    if len(others) > room:
        others = others[: room - room // 2] + others[len(others) - room // 2 :]
    return sorted(padding + others)


def _lanes(marked: pd.DataFrame, low: float, high: float) -> dict[int, int]:
    """Give each row that is written out the lowest line where its label touches no other."""
    scale = PLOT / max(high - low, 1e-9)
    tokens, norms = column(marked, "token"), column(marked, "norm")
    ends: list[float] = []  # of the last label on each line, in pixels
    lanes: dict[int, int] = {}
    for row in _labeled(marked):
        half = LETTER * len(shorten(tokens[row], LENGTH)) / 2 + 6
        middle = (norms[row] - low) * scale
        lane = next((lane for lane, end in enumerate(ends) if end <= middle - half), len(ends))
        ends[lane : lane + 1] = [middle + half]
        lanes[row] = lane
    return lanes


def _ticks(of_kind: pd.DataFrame, kind: str, peak: int, *, theme: Theme) -> go.Scatter:
    return go.Scatter(
        name=kind,
        x=of_kind["norm"],
        y=[peak * 1.04] * len(of_kind),
        mode="markers",
        marker={
            "symbol": KIND_STYLES[kind].symbol,
            "size": 11,
            "color": theme.kinds[kind],
            "line": {"color": theme.page, "width": 1},
        },
        customdata=column(of_kind, "token_id"),
        hovertext=[
            f"<b>{plain(token)}</b><br>id {token_id}<br>norm {norm:.3f}<br>{kind}"
            for token, token_id, norm in columns(of_kind, "token", "token_id", "norm")
        ],
        hoverinfo="text",
        selected={"marker": {"color": theme.accent, "opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _write_labels(figure: go.Figure, marked: pd.DataFrame, lanes: dict[int, int], peak: int, *, theme: Theme) -> None:
    rows = columns(marked, "token", "norm", "kind")
    for row, lane in lanes.items():
        token, norm, kind = rows[row]
        figure.add_annotation(
            x=norm,
            y=peak * (1.04 + LANE * (lane + 1)),
            text=f"<b>{plain(shorten(token, LENGTH))}</b>",
            font={"size": 12, "color": theme.kinds[kind]},
            showarrow=False,
        )
