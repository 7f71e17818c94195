"""How suspicious the rows of a vocabulary are: all of them at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.embeddings.result_health import Indicator
from inspector.plotting import theme as look
from inspector.plotting.frames import column, where
from inspector.plotting.theme import LIGHT, Theme

BINS = 60
TITLES = {"direction": "cosine to the unused rows", "norm": "how far the norm lies below the typical one (share)"}


def score_histogram(
    scores: pd.DataFrame, indicator: Indicator, *, title: str, subtitle: str = "", theme: Theme = LIGHT
) -> go.Figure:
    """Draw the scores of all ordinary tokens, those that are listed set apart.

    Args:
        scores: One row an embedding row: score (NaN where not judged), flagged (bool).

    Returns:
        A figure with one trace of bars for "ordinary tokens" and one for "listed as
        under-trained", on a logarithmic axis of counts; lines mark the threshold and where the
        unused rows lie.
    """
    judged = where(scores, scores["score"].notna())
    values = np.array(column(judged, "score"), dtype=float)
    flagged = np.array(column(judged, "flagged"), dtype=bool)
    edges = np.histogram_bin_edges(values, bins=BINS)
    figure = look.figure(title, subtitle, theme=theme, height=340)
    peak = 1
    for name, chosen, color, pattern in (
        ("ordinary tokens", ~flagged, theme.kinds["word"], ""),
        ("listed as under-trained", flagged, theme.accent, "/"),
    ):
        counts = np.histogram(values[chosen], bins=edges)[0]
        peak = max(peak, int(counts.max(initial=1)))
        figure.add_trace(_bars(name, counts, edges, color, pattern, theme=theme))
    figure.update_layout(
        barmode="overlay",
        bargap=0.06,
        xaxis=look.axis(title=TITLES.get(indicator.measure, "score"), theme=theme, grid=False),
        yaxis={
            **look.axis(title="tokens (log scale)", theme=theme),
            "type": "log",
            "range": [np.log10(0.7), np.log10(peak * 6)],
            "dtick": 1,
        },
        legend={"orientation": "h", "x": 0, "y": -0.24, "yanchor": "top", "font": {"color": theme.ink}},
        dragmode=False,
    )
    _mark(figure, indicator.threshold, "listed from here", theme.accent, "right", theme=theme)
    _mark(figure, indicator.reference_score, "unused rows", theme.kinds["unused"], "right", low=True, theme=theme)
    return figure


def _bars(name: str, counts: np.ndarray, edges: np.ndarray, color: str, pattern: str, *, theme: Theme) -> go.Bar:
    return go.Bar(
        name=name,
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts,
        width=np.diff(edges),
        marker={
            "color": color,
            "line": {"color": theme.page, "width": 0.5},
            "pattern": {
                "shape": pattern,
                "fillmode": "overlay",
                "fgcolor": theme.page,
                "fgopacity": 0.7,
                "size": 6,
                "solidity": 0.2,
            },
        },
        hovertext=[
            f"{count:,} {name}<br>score {low:.3f} to {high:.3f}"
            for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True)
        ],
        hoverinfo="text",
    )


def _mark(
    figure: go.Figure, place: float | None, text: str, color: str, side: str, *, theme: Theme, low: bool = False
) -> None:
    if place is None:
        return
    figure.add_shape(
        type="line", x0=place, x1=place, y0=0, y1=1, yref="paper", line={"color": color, "width": 1.5, "dash": "dot"}
    )
    figure.add_annotation(
        x=place,
        y=0.86 if low else 0.98,
        yref="paper",
        text=f"{text} ({place:.2f})",
        font={"size": 12, "color": color},
        bgcolor=look.alpha(theme.page, 0.85),
        showarrow=False,
        xanchor=side,
        xshift=-4,
    )
