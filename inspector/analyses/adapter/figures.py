"""How much an adapter changes each weight: a heat map of kinds and layers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.frames import columns
from inspector.plotting.layers import CELL, SMALL, is_legible, layer_cells, layer_figure
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain

OUTSIDE = "other"  # the column of weights in no layer
DEAD, BROKEN, UNKNOWN = "∅", "!", "?"
Place = tuple[str, str]  # kind, layer


def grid(targets: pd.DataFrame) -> tuple[list[str], list[str], dict[Place, list[int]]]:
    """Sort weights into layers and kinds.

    Args:
        targets: `Adapter.targets`.

    Returns:
        Layers, kinds, and (kind, layer) -> rows of the frame.
    """
    cells: dict[Place, list[int]] = {}
    for row, (layer, kind) in enumerate(columns(targets, "layer", "kind")):
        cells.setdefault((kind, layer or OUTSIDE), []).append(row)
    layers = sorted({layer for _, layer in cells} - {OUTSIDE}, key=int)
    layers += [OUTSIDE] if any(layer == OUTSIDE for _, layer in cells) else []
    return layers, list(dict.fromkeys(kind for kind, _ in cells)), cells


def has_picture(targets: pd.DataFrame) -> bool:
    """Whether there is something to draw: (IA)³ alone has no norm without its base."""
    return any(not finite or not math.isnan(norm) for norm, finite in columns(targets, "norm", "finite"))


def cell_of(targets: pd.DataFrame, rows: list[int]) -> tuple[float, str]:
    """The norm of some weights as one vector, NaN if it is not known, and the text of their cell."""
    found = [columns(targets.iloc[[row]], "norm", "dead", "finite")[0] for row in rows]
    if not all(finite for _, _, finite in found):
        return math.nan, BROKEN
    if all(dead for _, dead, _ in found):
        return 0.0, DEAD
    norm = math.hypot(*(norm for norm, _, _ in found))
    return norm, UNKNOWN if math.isnan(norm) else f"{norm:.2g}"


def norm_map(targets: pd.DataFrame, *, title: str, subtitle: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw the norm of the change of each kind of weight in each layer.

    Args:
        targets: `Adapter.targets`.
        title: Of the figure.
        subtitle: What the signs mean.
    """
    across, down, cells = grid(targets)
    legible = is_legible(across)
    figure = layer_figure(
        title, subtitle, layers=across, kinds=down, cell=CELL if legible else SMALL, below=118, theme=theme
    )
    figure.update_layout(xaxis_title_text="layer")
    z = np.full((len(down), len(across)), np.nan)
    text, hover = np.full(z.shape, "", dtype=object), np.full(z.shape, "", dtype=object)
    for (kind, layer), rows in cells.items():
        place = down.index(kind), across.index(layer)
        norm, text[place] = cell_of(targets, rows)
        z[place] = 0.0 if math.isnan(norm) else norm
        hover[place] = "<br><br>".join(_hover(targets.iloc[[row]]) for row in rows[:3])
    measured = bool(np.nansum(z)) if z.size else False
    figure.add_trace(
        layer_cells(
            z,
            text,
            hover,
            ends=(0.0, float(np.nanmax(z)) if measured else 1.0),
            colorbar=look.colorbar("norm of ΔW", theme=theme),
            legible=legible,
            theme=theme,
            scaled=measured,
        )
    )
    return figure


def _hover(row: pd.DataFrame) -> str:
    module, method, shape, rank, scale, norm, effective, dead, finite = columns(
        row, "module", "method", "shape", "rank", "scale", "norm", "effective_rank", "dead", "finite"
    )[0]
    said = [f"<b>{plain(module)}</b>", f"{method}, {shape}" if shape else method]
    said += [f"rank {rank}, scale {scale:.4g}"] if rank else []
    said += ["contains NaN or infinity"] if not finite else ["changes nothing"] if dead else []
    said += [f"norm {norm:.4g}"] if not math.isnan(norm) else []
    said += [f"effective rank {effective:.3g}"] if not math.isnan(effective) else []
    return "<br>".join(said)
