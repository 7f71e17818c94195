"""Experts from top to bottom and layers from left to right: how large each is, or how often it is used."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.experts.frames import layer_labels
from inspector.analyses.experts.result import ExpertPlace
from inspector.plotting import theme as look
from inspector.plotting.frames import columns
from inspector.plotting.layers import CELL, is_legible, layer_cells, layer_figure
from inspector.plotting.ranks import thinned
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain

ZERO, SAME, BROKEN, UNKNOWN = "∅", "=", "!", "?"
HOVER = {
    ZERO: "only zeros",
    SAME: "norm {norm}, same numbers as another",
    BROKEN: "contains NaN or infinity",
    UNKNOWN: "no weights in the files",
}
HEIGHT, THINNEST = 480, 2  # pixels of the rows of many experts, and of one at least
TEXTS = 24  # experts up to which a cell has room for a text


def sign(norm: float, *, zero: bool, finite: bool, same: bool) -> str:
    """The text of a cell."""
    if not finite:
        return BROKEN
    if math.isnan(norm):
        return UNKNOWN
    return ZERO if zero else SAME if same else f"{norm:.3g}"


def expert_map(
    experts: pd.DataFrame,
    *,
    value: str,
    title: str,
    subtitle: str,
    duplicates: Collection[Sequence[ExpertPlace]] = (),
    theme: Theme = LIGHT,
) -> go.Figure:
    """Draw a number of each expert in each layer.

    Args:
        experts: `MixtureExperts.experts`.
        value: The column: "norm" or "used".
        title: Of the figure.
        subtitle: What the numbers are.
        duplicates: `MixtureExperts.duplicates`, which have a sign.
        theme: Its colors.
    """
    labels = layer_labels(experts)
    across = list(labels.values())
    count = 1 + max((each[0] for each in columns(experts, "expert")), default=0)
    legible = is_legible(across) and count <= TEXTS
    figure = layer_figure(
        title,
        subtitle,
        layers=across,
        kinds=[str(number) for number in range(count)],
        cell=CELL if count * CELL <= HEIGHT else max(THINNEST, HEIGHT // count),
        below=118,
        theme=theme,
    )
    stops = thinned(count)
    figure.update_layout(
        xaxis_title_text="layer",
        yaxis={"title_text": "expert", "tickvals": stops, "ticktext": [str(each) for each in stops]},
    )
    same = {(place.module, place.expert) for group in duplicates for place in group}
    z = np.full((count, len(across)), np.nan)
    text, hover = np.full(z.shape, "", dtype=object), np.full(z.shape, "", dtype=object)
    places = {module: place for place, module in enumerate(labels)}
    for row in columns(experts, "module", "expert", value, "norm", "zero", "finite", "router_norm", "used"):
        module, expert, number, norm, zero, finite, router, used = row
        place = expert, places[module]
        known = number is not None and math.isfinite(number)
        z[place] = number if known else np.nan
        shown = sign(norm, zero=zero, finite=finite, same=(module, expert) in same)
        text[place] = shown if value == "norm" else f"{number:,}" if known else UNKNOWN
        hover[place] = "<br>".join(
            [
                f"<b>{plain(module)}, expert {expert}</b>",
                HOVER.get(shown, f"norm {norm:.5g}").format(norm=f"{norm:.5g}"),
            ]
            + ([] if math.isnan(router) else [f"row of the router: norm {router:.5g}"])
            + ([] if used is None else [f"tokens that chose it: {used:,}"])
        )
    known = z[np.isfinite(z)]
    low = 0.0 if value == "used" or not known[known > 0].size else float(known[known > 0].min())
    high = float(known.max()) if known.size else 1.0
    figure.add_trace(
        layer_cells(
            z,
            text,
            hover,
            ends=(low if low < high else 0.0, high or 1.0),
            colorbar=look.colorbar("tokens" if value == "used" else "norm", theme=theme),
            legible=legible,
            theme=theme,
            scaled=bool(known.size),
        )
    )
    return figure
