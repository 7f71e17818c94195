"""How suspicious the rows of a vocabulary are: all of them at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.embeddings.figures import counted_bars, mark_place
from inspector.analyses.embeddings.result_health import Indicator
from inspector.plotting import theme as look
from inspector.plotting.frames import column, where
from inspector.plotting.theme import LIGHT, Theme

BINS = 60
TITLES = {"direction": "cosine to the unused rows", "norm": "how far the norm is below the typical norm (share)"}


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
    bars = [
        (name, np.histogram(values[chosen], bins=edges)[0], color, pattern)
        for name, chosen, color, pattern in (
            ("ordinary tokens", ~flagged, theme.kinds["word"], ""),
            ("listed as under-trained", flagged, theme.accent, "/"),
        )
    ]
    peak = max(int(counts.max(initial=1)) for _, counts, _, _ in bars)
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=340,
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
    lines = {"fillmode": "overlay", "fgcolor": theme.page, "fgopacity": 0.7, "size": 6, "solidity": 0.2}
    for name, counts, color, pattern in bars:
        marker = {"color": color, "pattern": {"shape": pattern, **lines}}
        figure.add_trace(counted_bars(name, counts, edges, f"{name}<br>score", marker, theme=theme))
    for place, what, color, height in (
        (indicator.threshold, "listed from here on", theme.accent, 0.98),
        (indicator.reference_score, "unused rows", theme.kinds["unused"], 0.86),
    ):
        if place is not None:
            text = f"{what} ({place:.2f})"
            mark_place(figure, place, text, color, "right", height=height, top=None, theme=theme)
    return figure
