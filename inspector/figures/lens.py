"""The vocabulary lens: the top token of every layer and position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.figures import theme as look
from inspector.figures.frames import columns, where
from inspector.figures.text import percent_text, plain, shorten
from inspector.figures.theme import LIGHT, Theme

ACROSS = 12  # positions that stand side by side with legible tokens
WIDTH = 620  # pixels for which tokens are cut; Plotly fits their size to the true width
LETTER = 7.8  # pixels that a letter of 12 pixels may take
HOVER_RANKS = 5


@dataclass(frozen=True, slots=True)
class Grid:
    """Which way the axes run, and how they are named."""

    down: bool  # positions run downward and layers to the right
    tokens: tuple[str, ...]
    labels: tuple[str, ...]  # of layers

    @property
    def columns(self) -> int:
        """Cells side by side."""
        return max(1, len(self.labels if self.down else self.tokens))

    @property
    def rows(self) -> int:
        """Cells one above the other."""
        return max(1, len(self.tokens if self.down else self.labels))

    @property
    def cell_height(self) -> int:
        """Height of a cell in pixels."""
        return 26 if self.down else 38

    @property
    def letters(self) -> int:
        """Characters of the longest token that a cell shows."""
        return int(min(max(WIDTH / self.columns / LETTER, 4), 14))


def token_heatmap(
    cells: pd.DataFrame,
    *,
    value: str = "probability",
    tokens: Sequence[str],
    layers: Sequence[str] = (),
    title: str,
    subtitle: str = "",
    theme: Theme = LIGHT,
    down: bool | None = None,
) -> go.Figure:
    """Draw layers by positions, each cell with its top token, coloured by how sure it is.

    Args:
        cells: `Lens.cells` of one rung: layer, position, rank (0 = likeliest), token, token_id,
            score, probability. All ranks may be given; the first five go into the hover text.
        value: What colours a cell: "probability" (0..1) or "score" (its range in the cells).
        tokens: The text's tokens, one a position; the same may come twice.
        layers: Label of each layer, embeddings first; the numbers where there is none.
        title: Of the figure, with the checkpoint's name.
        subtitle: One more line of plain text.
        theme: Colours.
        down: False puts positions from left to right and layers from bottom to top; True puts
            positions downward and layers from left to right, which keeps long texts legible;
            None takes False for up to 12 positions, or where there are more layers still.

    Returns:
        A figure whose trace "cells" is one transparent square a cell, with customdata
        [layer, position].
    """
    top = where(cells, cells["rank"] == 0)
    names = list(layers) or [str(n) for n in range(1 + max(top["layer"].tolist(), default=0))]
    if down is None:
        down = ACROSS < len(tokens) >= len(names)
    grid = Grid(down=down, tokens=tuple(tokens), labels=tuple(names))
    low, high = _limits(top[value].to_numpy(dtype=float), value)
    above = look.title_height(title, subtitle) + (48 if down else 0)
    below = 66 if down else 118
    figure = go.Figure(
        layout=look.layout(
            title=plain(title),
            subtitle=plain(subtitle),
            theme=theme,
            height=grid.rows * grid.cell_height + above + below,
        )
    )
    figure.update_layout(
        xaxis=_position_axis(grid, theme) if not down else _layer_axis(grid, theme),
        yaxis=_layer_axis(grid, theme) if not down else _position_axis(grid, theme),
        margin={"t": above, "b": below},
        clickmode="event+select",
        hovermode="closest",
        hoverdistance=60,
        dragmode=False,
        showlegend=False,
    )
    figure.add_trace(_colors(top, grid, value=value, limits=(low, high), theme=theme))
    figure.add_trace(_squares(cells, top, grid, theme=theme))
    return figure


def _limits(values: np.ndarray, value: str) -> tuple[float, float]:
    if value == "probability":
        return 0.0, 1.0
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    return low, high if high > low else low + 1.0


def _position_axis(grid: Grid, theme: Theme) -> dict[str, Any]:
    length = 20 if grid.down else grid.letters
    edges = [-0.5, len(grid.tokens) - 0.5]
    return {
        **look.axis(title="position", theme=theme, grid=False),
        "tickvals": list(range(len(grid.tokens))),
        "ticktext": [plain(shorten(token, length)) for token in grid.tokens],
        "tickfont": {"size": 12, "color": theme.ink},
        "range": edges[::-1] if grid.down else edges,
        "tickangle": 0 if grid.down or grid.columns <= 9 else -35,
    }


def _layer_axis(grid: Grid, theme: Theme) -> dict[str, Any]:
    length = grid.letters if grid.down else 20
    return {
        **look.axis(title="layer", theme=theme, grid=False),
        "tickvals": list(range(len(grid.labels))),
        "ticktext": [plain(shorten(label, length)) for label in grid.labels],
        "range": [-0.5, len(grid.labels) - 0.5],
        "side": "top" if grid.down else "left",
        "tickangle": 0,
    }


def _colors(
    top: pd.DataFrame, grid: Grid, *, value: str, limits: tuple[float, float], theme: Theme
) -> go.Heatmap:
    z = np.full((len(grid.labels), len(grid.tokens)), np.nan)
    text = np.full(z.shape, "", dtype=object)
    for layer, position, token, number in columns(top, "layer", "position", "token", value):
        z[layer, position] = number
        text[layer, position] = plain(shorten(token, grid.letters))
    if grid.down:
        z, text = z.T, text.T
    steps = len(theme.ramp) - 1
    return go.Heatmap(
        name="colors",
        z=z,
        zmin=limits[0],
        zmax=limits[1],
        text=text.tolist(),
        texttemplate="%{text}",
        textfont={"color": theme.ramp_ink},
        xgap=2,
        ygap=2,
        colorscale=[[step / steps, color] for step, color in enumerate(theme.ramp)],
        colorbar=_colorbar(value, theme),
        hoverinfo="skip",
    )


def _colorbar(value: str, theme: Theme) -> dict[str, Any]:
    return {
        "title": {"text": f" {value}", "side": "right", "font": {"color": theme.muted}},
        "tickfont": {"size": 12, "color": theme.muted},
        **({"tickvals": [0, 0.5, 1], "tickformat": ".0%"} if value == "probability" else {}),
        "orientation": "h",
        "thickness": 10,
        "len": 0.45,
        "x": 0.97,
        "xanchor": "right",
        "ticklabeloverflow": "allow",
        "y": 0,
        "yref": "container",
        "yanchor": "bottom",
        "ypad": 4,
        "xpad": 0,
        "outlinewidth": 0,
    }


def _squares(cells: pd.DataFrame, top: pd.DataFrame, grid: Grid, *, theme: Theme) -> go.Scatter:
    """Lay a square over each cell, since a heat map's own cells cannot be selected."""
    layers, positions = top["layer"].tolist(), top["position"].tolist()
    x, y = (layers, positions) if grid.down else (positions, layers)
    return go.Scatter(
        name="cells",
        x=x,
        y=y,
        mode="markers",
        marker={
            "symbol": "square-open",
            "size": min(grid.cell_height, WIDTH / grid.columns) - 4,
            "color": theme.accent,
            "line": {"width": 3},
            "opacity": 0,
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 0}},
        customdata=[list(place) for place in columns(top, "layer", "position")],
        hovertext=_hovers(cells, top, grid),
        hoverinfo="text",
    )


def _hovers(cells: pd.DataFrame, top: pd.DataFrame, grid: Grid) -> list[str]:
    best = where(cells, cells["rank"] < HOVER_RANKS)
    lines: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for layer, position, rank, token, score, probability in columns(
        best, "layer", "position", "rank", "token", "score", "probability"
    ):
        share = f" · {plain(percent_text(probability))}" if np.isfinite(probability) else ""
        line = f"{rank + 1}. {plain(token)} · score {score:.3f}{share}"
        lines.setdefault((layer, position), []).append((rank, line))
    return [
        f"<b>layer {plain(grid.labels[layer])}, position {position}: "
        f"{plain(grid.tokens[position])}</b><br>"
        + "<br>".join(line for _, line in sorted(lines[layer, position]))
        for layer, position in columns(top, "layer", "position")
    ]
