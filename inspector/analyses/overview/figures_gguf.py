"""How many bits a number takes, by kind of tensor and layer."""

from __future__ import annotations

import math
import re

import numpy as np
import plotly.graph_objects as go

from inspector.analyses.overview.result_gguf import GgufFacts
from inspector.plotting import theme as look
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain, shorten_name

CELL, LABEL, TICKS = 24, 34, 40  # pixels of a row; characters of a kind; layers that are named
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
    above = look.title_height(title, subtitle) + 8
    stride = max(1, math.ceil(len(across) / TICKS))
    bits = np.full((len(down), len(across)), np.nan)
    text = np.full(bits.shape, "", dtype=object)
    hover = np.full(bits.shape, "", dtype=object)
    for (kind, layer), (held, width) in cells.items():
        place = down.index(kind), across.index(layer)
        bits[place], text[place] = width, held
        where = "in no layer" if layer == "other" else f"layer {layer}"
        hover[place] = f"<b>{plain(kind)}</b>, {where}<br>{held}: {width:.4g} bits a number"
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=above + CELL * max(len(down), 1) + 110,
        xaxis={
            **look.axis(title="layer", theme=theme, grid=False),
            "tickvals": list(range(0, len(across), stride)),
            "ticktext": across[::stride],
            "range": [-0.5, len(across) - 0.5],
        },
        yaxis={
            **look.axis(title="", theme=theme, grid=False),
            "tickvals": list(range(len(down))),
            "ticktext": [plain(shorten_name(kind, LABEL)) for kind in down],
            "range": [len(down) - 0.5, -0.5],
        },
        margin={"t": above, "b": 96},
        dragmode=False,
    )
    figure.add_trace(
        go.Heatmap(
            z=bits,
            zmin=0,
            zmax=WHOLE,
            text=text.tolist(),
            texttemplate="%{text}" if len(across) <= LEGIBLE else None,
            textfont={"color": theme.ramp_ink, "size": 11},
            hovertext=hover.tolist(),
            hoverinfo="text",
            hoverongaps=False,
            xgap=1,
            ygap=1,
            colorscale=theme.scale,
            colorbar=look.colorbar("bits a number", theme=theme),
        )
    )
    return figure
