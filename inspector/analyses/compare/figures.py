"""What changed between two checkpoints: a heat map of the layers, bars for the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.compare.words import legend
from inspector.plotting import theme as look
from inspector.plotting.bars import bar_rows
from inspector.plotting.frames import column, columns, where
from inspector.plotting.layers import CELL, LABEL, SMALL, is_legible, layer_cells, layer_figure
from inspector.plotting.lettering import text_width
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain, shorten_name

MEASURES = {"relative change": "relative_change", "cosine": "cosine"}  # what may color the cells
FLOOR = 1e-8  # a smaller share is drawn as this one
BAR = 26
TICK_SIZE, TICK_GAP = 12, 8  # pixels of a color bar's numbers, and between two
NOTHING, NO_NUMBER = "=", "–"  # beside the color: nothing changed; not measured


@dataclass(frozen=True, slots=True)
class _Scale:
    """How a number becomes a color: the logarithm of a share, more change more color."""

    low: float
    high: float
    name: str
    percent: bool

    @property
    def ticks(self) -> dict[str, Any]:
        """Powers of ten, as many as have room side by side."""
        powers = range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)
        text = _share if self.percent else "{:g}".format
        texts = [text(10.0**power) for power in powers]
        apart = look.COLOR_BAR / max(self.high - self.low, 1e-9)  # pixels from one power to the next
        widest = max((text_width(each, TICK_SIZE) for each in texts), default=0.0)
        step = max(1, math.ceil((widest + TICK_GAP) / apart))
        return {"tickvals": list(powers)[::step], "ticktext": texts[::step]}


def change_heatmap(
    layers: pd.DataFrame, *, names: str, values: str, measure: str = "relative change", theme: Theme = LIGHT
) -> go.Figure:
    """Draw how much each kind of tensor changed in each layer.

    Args:
        layers: `Comparison.layers`.
        names: Of both checkpoints.
        values: `Comparison.values`.
        measure: One of MEASURES; of the cosine it is 1 - cosine that colors a cell.

    Returns:
        Kinds from top to bottom, layers from left to right, colors on a logarithmic scale; "="
        marks a cell without any change, "–" one that could not be measured.
    """
    across = list(dict.fromkeys(column(layers, "layer")))
    down = list(dict.fromkeys(column(layers, "kind")))
    legible = is_legible(across)
    figure = layer_figure(
        f"What changed in each layer, {names}",
        legend(values),
        layers=across,
        kinds=down,
        cell=CELL if legible else SMALL,
        below=118,
        theme=theme,
    )
    figure.add_trace(_cells(layers, across, down, measure=measure, legible=legible, theme=theme))
    return figure


def changed_outside(tensors: pd.DataFrame, *, most: int) -> pd.DataFrame:
    """Choose what `change_bars` draws: tensors in no layer, those that changed most first.

    Args:
        tensors: `Comparison.tensors`.
    """
    kept = where(tensors, (tensors["layer"] == "") & (tensors["relative_change"] > 0))
    return kept.sort_values(by="relative_change", ascending=False, kind="stable").head(most)


def change_bars(tensors: pd.DataFrame, *, names: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw the relative change of single tensors as bars, in their order.

    Args:
        tensors: Rows of `Comparison.tensors` that were measured.
        names: Of both checkpoints.
    """
    shares = column(tensors, "relative_change")
    return bar_rows(
        shares,
        names=[plain(shorten_name(name, LABEL)) for name in column(tensors, "name")],
        texts=[_share(share) for share in shares],
        hovers=[
            f"<b>{plain(name)}</b><br>relative change {_share(share)}<br>cosine {cosine:.6g}<br>largest difference "
            f"{largest:.3g}"
            for name, share, cosine, largest in columns(tensors, "name", "relative_change", "cosine", "max_abs")
        ],
        measure="relative change |b − a| / |a|",
        tickformat=".3~%",
        title=f"What changed outside the layers, {names}",
        subtitle="embeddings, norms and heads, most changed first",
        pitch=BAR,
        size=12,
        room=64,
        theme=theme,
    )


def _cells(
    layers: pd.DataFrame, across: list[str], down: list[str], *, measure: str, legible: bool, theme: Theme
) -> go.Heatmap:
    shape = (len(down), len(across))
    z = np.full(shape, np.nan)
    text = np.full(shape, "", dtype=object)
    hover = np.full(shape, "", dtype=object)
    x, y = ({each: at for at, each in enumerate(names)} for names in (across, down))
    told = text.astype(bool)
    for row in layers.to_dict("records"):
        place = y[row["kind"]], x[row["layer"]]
        share = row["relative_change"]
        value = share if measure == "relative change" else 1 - row["cosine"]
        z[place] = math.log10(max(value, FLOOR)) if value > 0 else np.nan
        text[place], hover[place], told[place] = _told(row, measure), _hover(row), True
    finite = z[np.isfinite(z)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (-4.0, 0.0)
    low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
    z[told & np.isnan(z)] = low  # no change, or none that is known: the palest, and its sign
    percent = measure == "relative change"
    scale = _Scale(low, high, measure if percent else "1 − cosine", percent)
    return layer_cells(
        z,
        text,
        hover,
        ends=(low, high),
        colorbar=look.colorbar(scale.name, theme=theme) | scale.ticks,
        legible=legible,
        theme=theme,
        scaled=bool(len(finite)),
    )


def _told(row: dict[str, Any], measure: str) -> str:
    """What a cell says."""
    if row["unequal"] == 0:
        return NOTHING
    value = row[MEASURES[measure]]
    if math.isnan(value):
        return NO_NUMBER
    return _share(value) if measure == "relative change" else _cosine(value)


def _hover(row: dict[str, Any]) -> str:
    head = f"<b>{plain(row['layer'])}: {plain(row['kind'])}</b>"
    if row["tensors"] > 1:
        head += f" ({row['tensors']:,} tensors)"
    if row["unequal"] == 0:
        return f"{head}<br>no difference"
    if math.isnan(row["relative_change"]):
        return f"{head}<br>changed, not measured"
    return (
        f"{head}<br>relative change {_share(row['relative_change'])}<br>cosine {row['cosine']:.6g}<br>largest "
        f"difference {row['max_abs']:.3g}"
    )


def _share(share: float) -> str:
    """A share in percent, with two digits that count."""
    percent = 100 * share
    if percent and percent < 0.001:
        return f"{percent:.0e}%".replace("e-0", "e-")
    return f"{percent:.2g}%" if percent < 99.5 else f"{percent:,.0f}%"


def _cosine(cosine: float) -> str:
    """A cosine, with what it lacks to 1 where three digits would hide it."""
    if cosine < 0.9995:
        return f"{cosine:.3f}"
    return f"1−{1 - cosine:.0e}".replace("e-0", "e-") if cosine < 1 else "1"
