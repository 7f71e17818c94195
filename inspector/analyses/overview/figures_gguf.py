"""How many bits a number takes, by kind of tensor and layer."""

from __future__ import annotations

import re

import numpy as np
import plotly.graph_objects as go

from inspector.analyses.overview.result_gguf import GgufFacts
from inspector.plotting import theme as look
from inspector.plotting.layers import layer_cells, layer_figure
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain

CELL = 24  # pixels of a row
LEGIBLE = 26  # layers, up to which types are written into their cells
WHOLE = 16  # bits from which on the color is the darkest: nothing was quantized
_LAYER = re.compile(r"(?:^|\.)blk\.(\d+)\.")


def by_kind(facts: GgufFacts) -> tuple[list[str], list[str], dict[tuple[str, str], tuple[str, float]]]:
    """Sort tensors of more than one type, or of blocks, into layers and kinds.

    Returns:
        Layers, kinds, and (kind, layer) -> type and bits a number; a tensor in no layer is in the layer "other".
    """
    cells: dict[tuple[str, str], tuple[str, float]] = {}
    layers: set[int] = set()
    kinds: dict[str, bool] = {}
    for name, held in facts.stored.items():
        found = _LAYER.search(name)
        kind = (name[found.end() :] if found else name).removesuffix(".weight")
        if found:
            layers.add(int(found[1]))
        kinds[kind] = kinds.get(kind, False) or held[0] != "float32"
        cells[kind, found[1] if found else "other"] = held
    shown = [kind for kind, coded in kinds.items() if coded] or list(kinds)
    across = [*map(str, sorted(layers))]
    if any((kind, "other") in cells for kind in shown):
        across.append("other")
    return across, shown, {place: held for place, held in cells.items() if place[0] in shown}


def block_map(facts: GgufFacts, *, title: str, subtitle: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw the types of tensors by layer and kind, the darker the more bits a number takes."""
    across, down, cells = by_kind(facts)
    bits = np.full((len(down), len(across)), np.nan)
    text = np.full(bits.shape, "", dtype=object)
    hover = np.full(bits.shape, "", dtype=object)
    for (kind, layer), (held, width) in cells.items():
        place = down.index(kind), across.index(layer)
        bits[place], text[place] = width, held
        where = "in no layer" if layer == "other" else f"layer {layer}"
        hover[place] = f"<b>{plain(kind)}</b>, {where}<br>{held}: {width:.4g} bits a number"
    figure = layer_figure(title, subtitle, layers=across, kinds=down, cell=CELL, below=96, theme=theme)
    figure.update_layout(xaxis_title_text="layer")
    figure.add_trace(
        layer_cells(
            bits,
            text,
            hover,
            ends=(0, WHOLE),
            colorbar=look.colorbar("bits a number", theme=theme),
            legible=len(across) <= LEGIBLE,
            theme=theme,
        )
    )
    return figure
