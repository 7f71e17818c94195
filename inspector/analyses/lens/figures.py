"""The vocabulary lens: the top token of every layer and position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.lens.figures_colors import Coloring, color_cells
from inspector.plotting import theme as look
from inspector.plotting.frames import columns, where
from inspector.plotting.lettering import text_width
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import percent_text, plain, shorten

ACROSS = 12  # positions that stand side by side with legible tokens
WIDTH = 620  # pixels for which tokens are cut; Plotly fits their size to the true width
PHONE = 250  # the same for a phone
LETTER, SIZE = 7.8, 11  # pixels that a letter takes at most, and the height of letters
NARROWEST = 44  # pixels of a cell with a legible token: more columns make the figure wider
SCROLLED = 456  # pixels of all columns where the figure scrolls because the page is narrow
TALL, LOW, HIGH = 230, 38, 52  # pixels that few rows share, and of one of them
LONGEST = 14  # letters of a token
MANY = 1000  # cells: above, they are shown small and without tokens
SMALL_HEIGHT = 560  # pixels that all rows of small cells share
LABELS = 40  # positions that are named along an axis of small cells
HOVER_RANKS, HOVER_RANKS_OF_MANY = 5, 3
OF_THE_TOP = ("probability", "cosine")  # colors that show how sure a top token is
PALE, PALENESS = "pale where it repeats the input", 0.35


@dataclass(frozen=True, slots=True)
class GridAxes:
    """Which way the axes run, and how they are named."""

    down: bool  # positions run downward and layers to the right
    small: bool  # all cells in one view, without tokens
    tokens: tuple[str, ...]
    labels: tuple[str, ...]  # of layers
    room: int = WIDTH  # pixels of all columns

    @property
    def columns(self) -> int:
        """Cells side by side."""
        return max(1, len(self.labels if self.down else self.tokens))

    @property
    def rows(self) -> int:
        """Cells one above the other."""
        return max(1, len(self.tokens if self.down else self.labels))

    @property
    def cell_height(self) -> float:
        """Height of a cell in pixels."""
        if self.small:
            return min(max(SMALL_HEIGHT / self.rows, 8), 24)
        return 26 if self.down or self.rows > ACROSS + 1 else min(max(TALL / self.rows, LOW), HIGH)

    @property
    def letters(self) -> int:
        """Characters of the longest token that a cell shows."""
        return int(min(max(self.room / self.columns / LETTER, 5), LONGEST))

    @property
    def slanted(self) -> bool:
        """Whether the names of positions are too long to stand side by side."""
        longest = max((text_width(shorten(token, LONGEST), SIZE + 1) for token in self.tokens), default=0)
        return longest + 4 > max(SCROLLED / self.columns, NARROWEST)

    def repeats(self, position: int, token: str) -> bool:
        """Whether a cell's token is the input's own."""
        return not self.small and token == self.tokens[position]

    def fit(self, token: str, sign: str = "") -> str:
        """The token as far as a cell has room for it."""
        room = max(self.room / self.columns, NARROWEST) - 6
        whole = len(token) <= LONGEST and text_width(sign + token, SIZE) <= room
        return token if whole else shorten(token, self.letters - len(sign))

    @property
    def width(self) -> int | None:
        """Width of the figure in pixels; None takes what there is."""
        if self.small or self.columns * NARROWEST <= self.room:
            return None
        return 120 + self.columns * NARROWEST


def token_heatmap(
    cells: pd.DataFrame,
    *,
    coloring: Coloring | None = None,
    tokens: Sequence[str],
    layers: Sequence[str] = (),
    title: str,
    subtitle: str = "",
    theme: Theme = LIGHT,
    down: bool | None = None,
    small: bool | None = None,
    chosen: tuple[int, int] | None = None,
    emphasized: Sequence[int] = (),
    narrow: bool = False,
) -> go.Figure:
    """Draw layers by positions, each cell with its top token, colored by a number.

    Args:
        cells: `Lens.cells` of one rung: layer, position, rank (0 = most likely), token, token_id,
            score, probability. All ranks may be given; the first five go into the hover text.
        coloring: What colors the cells; None: the top token's probability.
        tokens: The text's tokens, one a position; the same may come twice.
        layers: Label of each layer, embeddings first; the numbers where there is none.
        title: Of the figure, with the checkpoint's name.
        subtitle: One more line of plain text.
        theme: Colors.
        down: False puts positions from left to right and layers from bottom to top; True puts
            positions downward and layers from left to right, which keeps long texts legible;
            None takes False for up to 12 positions, or where there are more layers still.
        small: True: all cells in one view, tokens in the hover text alone; None: for more than
            1,000 cells.
        chosen: Layer and position of the cell that is outlined before anything is clicked.
        emphasized: Positions to look at, such as masks: they are framed, and named in bold.
        narrow: For a phone: positions run downward if there are fewer layers, however few they are.

    Returns:
        A figure whose trace "cells" is one transparent bar a cell, with customdata
        [layer, position]; its layout has a width where it is to be scrolled. Where the colors
        show how sure the top tokens are, those that repeat the input are pale.
    """
    top = where(cells, cells["rank"] == 0)
    names = list(layers) or [str(n) for n in range(1 + max(top["layer"].tolist(), default=0))]
    if small is None:
        small = len(tokens) * len(names) > MANY
    if down is None:
        down = not small and (0 if narrow else ACROSS) < len(tokens) >= len(names)
    grid = GridAxes(down, small, tuple(tokens), tuple(names), room=PHONE if narrow else WIDTH)
    coloring = coloring or color_cells("probability", cells=cells, states=cells, pinned=cells)
    faded = [
        grid.repeats(position, token) and coloring.name in OF_THE_TOP
        for position, token in columns(top, "position", "token")
    ]
    if any(faded):
        subtitle = f"{subtitle}; {PALE}" if subtitle else PALE
    above = look.title_height(title, subtitle) + (48 if down else 0)
    below = 66 if down else 128
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=round(grid.rows * grid.cell_height) + above + below,
        xaxis=_position_axis(grid, emphasized, theme) if not down else _layer_axis(grid, theme),
        yaxis=_layer_axis(grid, theme) if not down else _position_axis(grid, emphasized, theme),
        margin={"t": above, "b": below},
        width=grid.width,
        clickmode="event+select",
        hovermode="closest",
        barmode="overlay",
        dragmode=False,
        showlegend=False,
    )
    strong = where(top, [not each for each in faded])
    figure.add_trace(_colors(strong, grid, coloring=coloring, theme=theme))
    figure.add_trace(_frames(cells, top, grid, coloring=coloring, chosen=chosen, theme=theme))
    if any(faded):
        pale = _colors(where(top, faded), grid, coloring=coloring, theme=theme)
        shades = [[share, look.mix(color, theme.page, PALENESS)] for share, color in theme.scale]
        pale.update(name="repeats", colorscale=shades, showscale=False, textfont={"color": theme.muted})
        figure.add_trace(pale)
    for position in emphasized if not small else ():
        figure.add_shape(_strip(grid, position), line={"color": theme.ink, "width": 1.5})
    return figure


def _strip(grid: GridAxes, position: int) -> dict[str, float]:
    """The edges of a position's cells."""
    along, across = (position - 0.5, position + 0.5), (-0.5, len(grid.labels) - 0.5)
    (left, right), (low, high) = (across, along) if grid.down else (along, across)
    return {"x0": left, "x1": right, "y0": low, "y1": high}


def _position_axis(grid: GridAxes, emphasized: Sequence[int], theme: Theme) -> dict[str, Any]:
    length = 20 if grid.down else 10 if grid.small else LONGEST
    edges = [-0.5, len(grid.tokens) - 0.5]
    stride = math.ceil(len(grid.tokens) / LABELS) if grid.small else 1
    named = list(range(0, len(grid.tokens), stride))
    numbered = stride > 1
    return {
        **look.axis(title="position", theme=theme, grid=False),
        "tickvals": named,
        "ticktext": [
            f"<b>{name}</b>" if at in emphasized else name
            for at in named
            for name in [(f"{at} " if numbered else "") + plain(shorten(grid.tokens[at], length))]
        ],
        "tickfont": {"size": 11 if grid.small else 12, "color": theme.ink},
        "range": edges[::-1] if grid.down else edges,
        "tickangle": -90 if grid.small else 0 if grid.down or not grid.slanted else -35,
    }


def _layer_axis(grid: GridAxes, theme: Theme) -> dict[str, Any]:
    length = max(grid.letters, 5) if grid.down else 20
    stride = math.ceil(len(grid.labels) / (SMALL_HEIGHT / 14)) if grid.small else 1
    named = list(range(0, len(grid.labels), stride))
    return {
        **look.axis(title="layer", theme=theme, grid=False),
        "tickvals": named,
        "ticktext": [plain(shorten(grid.labels[at], length)) for at in named],
        "range": [-0.5, len(grid.labels) - 0.5],
        "side": "top" if grid.down else "left",
        "tickangle": 0,
    }


def _colors(top: pd.DataFrame, grid: GridAxes, *, coloring: Coloring, theme: Theme) -> go.Heatmap:
    z = np.full((len(grid.labels), len(grid.tokens)), np.nan)
    text = np.full(z.shape, "", dtype=object)
    for layer, position, token in columns(top, "layer", "position", "token"):
        z[layer, position] = coloring.values.get((layer, position), np.nan)
        sign = f"{coloring.sign} " if (layer, position) in coloring.signs else ""
        shown = "" if grid.small else plain(grid.fit(token, sign))
        text[layer, position] = (sign + shown).strip()
    if grid.down:
        z, text = z.T, text.T
    gap = 2 if not grid.small else 1 if grid.columns <= 64 else 0
    scale = theme.scale
    return go.Heatmap(
        name="colors",
        z=z,
        zmin=coloring.low,
        zmax=coloring.high,
        text=text.tolist(),
        texttemplate="%{text}",
        textfont={"color": theme.ramp_ink, "size": SIZE},
        xgap=gap,
        ygap=gap,
        colorscale=scale,
        reversescale=coloring.falling,
        colorbar=_colorbar(coloring, theme),
        hoverinfo="skip",
    )


def _colorbar(coloring: Coloring, theme: Theme) -> dict[str, Any]:
    name = f"{plain(shorten(coloring.name, 40))}{coloring.unit}"
    ticks = {"tickvals": [value for value, _ in coloring.ticks], "ticktext": [text for _, text in coloring.ticks]}
    return look.colorbar(name, theme=theme) | (ticks if coloring.ticks else {})


def _frames(
    cells: pd.DataFrame,
    top: pd.DataFrame,
    grid: GridAxes,
    *,
    coloring: Coloring,
    chosen: tuple[int, int] | None,
    theme: Theme,
) -> go.Bar:
    """Lay a frame around each cell, since a heat map's own cells cannot be selected."""
    places = [list(place) for place in columns(top, "layer", "position")]
    layers, positions = top["layer"].tolist(), top["position"].tolist()
    x, y = (layers, positions) if grid.down else (positions, layers)
    outlined = [places.index(list(chosen))] if chosen and list(chosen) in places else None
    return go.Bar(
        name="cells",
        x=x,
        y=[1] * len(y),
        base=[at - 0.5 for at in y],
        width=1,
        marker={"color": "rgba(0, 0, 0, 0)", "line": {"width": 3, "color": theme.accent}, "opacity": 0},
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 0}},
        selectedpoints=outlined,
        customdata=places,
        hovertext=_hovers(cells, top, grid, coloring),
        hoverinfo="text",
    )


def _hovers(cells: pd.DataFrame, top: pd.DataFrame, grid: GridAxes, coloring: Coloring) -> list[str]:
    ranks = HOVER_RANKS if not grid.small else HOVER_RANKS_OF_MANY
    best = where(cells, cells["rank"] < ranks)
    lines: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for layer, position, rank, token, score, probability in columns(
        best, "layer", "position", "rank", "token", "score", "probability"
    ):
        share = f" · {plain(percent_text(probability))}" if np.isfinite(probability) else ""
        line = f"{rank + 1}. {plain(token)} · score {score:.3f}{share}"
        lines.setdefault((layer, position), []).append((rank, line))
    hovers = []
    for layer, position in columns(top, "layer", "position"):
        head = f"<b>layer {plain(grid.labels[layer])}, position {position}: {plain(grid.tokens[position])}</b>"
        told = "" if coloring.name in {"probability", "cosine"} else coloring.told((layer, position))
        ranking = [line for _, line in sorted(lines[layer, position])]
        hovers.append("<br>".join([head, *ranking, *([plain(told)] if told else [])]))
    return hovers
