"""How early the answer forms: each step against the true logits, over layers."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.frames import column, columns, where
from inspector.plotting.ranks import LABEL_PIXELS, SYMBOLS, name_end, spread, thinned
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain

HEIGHT, FOOT = 250, 58  # pixels below the title, and of them those below the plot
TOP = 1.06  # of the vertical axis
# Column of the states -> what its mean over positions says.
MEASURES = {
    "agrees": "Top token is already the final one",
    "overlap": "Top tokens shared with the logits",
    "correlation": "Rank correlation with the logits",
}


def rung_means(states: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Average a measure over positions.

    Args:
        states: `Lens.states`.
        measure: One of MEASURES.

    Returns:
        layer, rung and the measure; the logits' agreement with themselves is left out.
    """
    kept = states if measure == "agrees" else where(states, states["rung"] != "logits")
    kept = where(kept, kept[measure].notna())
    means = kept.groupby(["rung", "layer"], as_index=False).agg({measure: "mean"})
    return pd.DataFrame(means)


def rung_lines(
    states: pd.DataFrame, *, measure: str, rungs: Sequence[str], layers: Sequence[str], name: str, theme: Theme = LIGHT
) -> go.Figure:
    """Draw the mean of a measure over layers, one line a step, named where it ends.

    Args:
        states: `Lens.states`.
        measure: One of MEASURES.
        rungs: In the ladder's order, which keeps a rung's color and symbol.
        layers: Label of each layer.
        name: Of the checkpoint.
        theme: Colors.
    """
    means = rung_means(states, measure)
    title = MEASURES[measure]  # three stand side by side: the name takes a line of its own
    above = look.title_height(title, name)
    low = min([0.0, *column(means, measure)])
    shares = {} if measure == "correlation" else {"tickformat": ".0%"}
    stops = thinned(len(layers))
    figure = look.figure(
        title,
        name,
        theme=theme,
        height=HEIGHT + above,
        title={"font": {"size": 15}},
        xaxis={
            **look.axis(title="layer", theme=theme, grid=False),
            "tickvals": stops,
            "ticktext": ["emb." if at == 0 else plain(layers[at]) for at in stops],
        },
        yaxis={**look.axis(title="", theme=theme), "range": [low - 0.04, TOP], **shares},
        margin={"t": above, "b": FOOT, "r": 96},
        hovermode="x unified",
        showlegend=False,
    )
    ends: list[tuple[float, int, str]] = []  # how far below the top, number and name of each line
    for number, rung in enumerate(rungs):
        line = where(means, means["rung"] == rung)
        if not len(line):
            continue
        points = columns(line, "layer", measure)
        ends.append((TOP - max(points)[1], number, rung))
        figure.add_trace(
            go.Scatter(
                name=plain(rung),
                x=[layer for layer, _ in points],
                y=[value for _, value in points],
                mode="lines+markers",
                line={"width": 2, "color": theme.groups[number % len(theme.groups)]},
                marker={"symbol": SYMBOLS[number % len(SYMBOLS)], "size": 7},
                hovertemplate="%{y:.3f}",
            )
        )
    reach = TOP - low + 0.04
    depths = spread([end for end, *_ in sorted(ends)], step=LABEL_PIXELS * reach / (HEIGHT - FOOT), last=TOP - low)
    for depth, (_, number, rung) in zip(depths, sorted(ends), strict=True):
        name_end(figure, rung, TOP - depth, number=number, theme=theme)
    return figure
