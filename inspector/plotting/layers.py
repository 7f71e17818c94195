"""Figures of layers from left to right, and of what is in each of them from top to bottom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.theme import Theme
from inspector.text import plain, shorten_name

LABEL, TICKS = 34, 40  # characters of a kind; layers that are named along the axis
WIDTH, NARROWEST = 560, 46  # pixels of the plot, and of a cell whose number can be read
CELL, SMALL = 26, 18  # pixels of a row whose cells have a text, and of others
LEAST = 104  # pixels of all rows: with less, Plotly makes no room for names, and puts the color bar on the axis


def is_legible(layers: Sequence[str]) -> bool:
    """Whether a number fits into the cells of so many layers."""
    return len(layers) * NARROWEST <= WIDTH


def layer_figure(
    title: str, subtitle: str, /, *, layers: Sequence[str], kinds: Sequence[str], cell: int, below: int, theme: Theme
) -> go.Figure:
    """Begin a figure with a cell for each kind in each layer.

    Args:
        title: Of the figure.
        subtitle: Likewise.
        layers: Names from left to right; a cell's x is the place here.
        kinds: Names from top to bottom; a cell's y is the place here.
        cell: Pixels of a row, where there are many.
        below: Pixels for the layers' names and what explains the colors.
        theme: Its colors.
    """
    above = look.title_height(title, subtitle) + 8
    stride = max(1, math.ceil(len(layers) / TICKS))
    return look.figure(
        title,
        subtitle,
        theme=theme,
        height=above + max(cell * len(kinds), LEAST) + below + 14,
        xaxis={
            **look.axis(title="", theme=theme, grid=False),
            "tickvals": list(range(0, len(layers), stride)),
            "ticktext": [plain(each) for each in layers[::stride]],
            "tickangle": None if len(layers) <= 8 else -90,
            "autotickangles": [0, -90],
            "range": [-0.5, len(layers) - 0.5],
        },
        yaxis={
            **look.axis(title="", theme=theme, grid=False),
            "tickvals": list(range(len(kinds))),
            "ticktext": [plain(shorten_name(kind, LABEL)) for kind in kinds],
            "tickfont": {"size": 12, "color": theme.ink},
            "range": [len(kinds) - 0.5, -0.5],
        },
        margin={"t": above, "b": below},
        dragmode=False,
    )


def layer_cells(
    values: np.ndarray,
    texts: np.ndarray,
    hovers: np.ndarray,
    *,
    ends: tuple[float, float],
    colorbar: dict[str, Any],
    legible: bool,
    theme: Theme,
    scaled: bool = True,
) -> go.Heatmap:
    """Draw the cells of a `layer_figure`.

    Args:
        values: Which color each has, (kinds, layers); NaN: there is none.
        texts: What stands in each; safe for Plotly, as are all texts here.
        hovers: What is told of each.
        ends: Values of the palest and the strongest color.
        colorbar: Explains the colors.
        legible: Whether texts have room.
        theme: Its colors.
        scaled: Whether there are values to explain.
    """
    gap = 2 if legible else 1
    return go.Heatmap(
        z=values,
        zmin=ends[0],
        zmax=ends[1],
        text=texts.tolist(),
        texttemplate="%{text}" if legible else None,
        textfont={"color": theme.ramp_ink, "size": 12},
        hovertext=hovers.tolist(),
        hoverinfo="text",
        hoverongaps=False,
        xgap=gap,
        ygap=gap,
        colorscale=theme.scale,
        colorbar=colorbar,
        showscale=scaled,
    )
