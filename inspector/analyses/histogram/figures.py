"""The numbers of a tensor as a histogram."""

from __future__ import annotations

from itertools import pairwise

import plotly.graph_objects as go

from inspector.analyses.histogram.result import Histogram
from inspector.plotting import theme as look
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import shorten_name

HEIGHT = 260  # pixels
LABEL = 36  # characters of the tensor's name: as many as a narrow figure has room for


def histogram_figure(found: Histogram, *, name: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw how many numbers have which value.

    Returns:
        A figure with one trace of bars, one a bin.
    """
    edges = found.edges
    figure = look.figure(
        f"Values, {name}",
        shorten_name(found.tensor, LABEL),
        theme=theme,
        height=HEIGHT,
        xaxis=look.axis(title="value", theme=theme, grid=False),
        yaxis=look.axis(title="numbers, of a sample" if found.is_sample else "numbers", theme=theme),
        bargap=0.04,
        showlegend=False,
        dragmode=False,
    )
    figure.add_trace(
        go.Bar(
            x=[low / 2 + high / 2 for low, high in pairwise(edges)],
            y=found.counts,
            width=[high - low for low, high in pairwise(edges)],
            marker={"color": theme.kinds["word"], "line": {"color": theme.page, "width": 0.5}},
            hovertext=[
                f"{count:,} numbers<br>{low:.4g} to {high:.4g}"
                for count, (low, high) in zip(found.counts, pairwise(edges), strict=True)
            ],
            hoverinfo="text",
        )
    )
    return figure
