"""What became of each kind of tensor in each layer."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.merge_proof.result import NOTHING
from inspector.analyses.merge_proof.words import MEANING
from inspector.plotting import theme as look
from inspector.plotting.frames import column, columns
from inspector.plotting.layers import CELL, layer_figure
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain

FOOT = {"y": 0, "yref": "container", "yanchor": "bottom"}  # the legend lies below the axis's title
OUTSIDE = "other"  # the column of tensors in no layer
# Verdict -> its sign, and the name of its color; the worst last, which a cell of several tensors shows.
SIGNS = {
    "unchanged": "·",
    NOTHING: "∅",
    "merged": "✓",
    "within rounding": "≈",
    "added": "+",
    "not checkable": "?",
    "changed": "≠",
    "other base": "≠",
    "other alpha": "α",
    "merged more than once": "×",
    "not merged": "✗",
    "dropped": "–",
}
ORDER = {verdict: place for place, verdict in enumerate(SIGNS)}


def grid(tensors: pd.DataFrame) -> tuple[list[str], list[str], dict[tuple[str, str], list[tuple[str, str]]]]:
    """Sort tensors into layers and kinds.

    Args:
        tensors: `MergeProof.tensors`.

    Returns:
        Layers, kinds, and (kind, layer) -> (verdict, text of one tensor) of all that are there.
    """
    cells: dict[tuple[str, str], list[tuple[str, str]]] = {}
    layers: dict[str, None] = {}
    kinds: dict[str, bool] = {}
    for name, targeted, verdict, procedure, coefficient, reason, layer, kind in columns(
        tensors, "name", "targeted", "verdict", "procedure", "coefficient", "reason", "layer", "kind"
    ):
        if layer:
            layers[layer] = None
        kinds[kind] = kinds.get(kind, False) or targeted or verdict not in ("unchanged", "added")
        more = [f"procedure {procedure}"] if procedure else []
        more += [f"coefficient {coefficient:.4g}"] if coefficient is not None and not math.isnan(coefficient) else []
        text = f"<b>{plain(name)}</b><br>{verdict}: {MEANING[verdict]}" + "".join(f"<br>{each}" for each in more)
        cells.setdefault((kind, layer or OUTSIDE), []).append(
            (verdict, text + (f"<br>{plain(reason)}" if reason else ""))
        )
    shown = [kind for kind, said in kinds.items() if said] or list(kinds)
    across = sorted(layers, key=int)
    if any((kind, OUTSIDE) in cells for kind in shown):
        across.append(OUTSIDE)
    return across, shown, {place: found for place, found in cells.items() if place[0] in shown}


def worst(found: list[tuple[str, str]]) -> str:
    """The verdict that a cell shows."""
    return max((verdict for verdict, _ in found), key=ORDER.__getitem__)


def verdict_map(tensors: pd.DataFrame, *, title: str, subtitle: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw what became of each kind of tensor in each layer, colored by verdict.

    Args:
        tensors: `MergeProof.tensors`.
        title: Of the figure.
        subtitle: The verdict in a sentence.
    """
    across, down, cells = grid(tensors)
    present = [verdict for verdict in SIGNS if any(worst(found) == verdict for found in cells.values())]
    colors = palette(theme)
    figure = layer_figure(title, subtitle, layers=across, kinds=down, cell=CELL, below=104, theme=theme)
    figure.update_layout(xaxis_title_text="layer", legend=look.legend_below(theme) | FOOT)
    for verdict in present:
        z = np.full((len(down), len(across)), np.nan)
        text = np.full(z.shape, "", dtype=object)
        hover = np.full(z.shape, "", dtype=object)
        for (kind, layer), found in cells.items():
            if worst(found) == verdict:
                place = down.index(kind), across.index(layer)
                z[place], text[place] = 1, SIGNS[verdict]
                hover[place] = "<br><br>".join(each for _, each in found[:3])
        figure.add_trace(_cells(z, text, hover, color=colors[verdict], legible=len(across) <= 36))
        figure.add_trace(
            go.Scatter(
                x=[None],
                y=[None],
                mode="markers",
                name=f"{SIGNS[verdict]} {verdict}",
                marker={"symbol": "square", "size": 12, "color": colors[verdict]},
                showlegend=True,
            )
        )
    return figure


def _cells(z: np.ndarray, text: np.ndarray, hover: np.ndarray, *, color: str, legible: bool) -> go.Heatmap:
    return go.Heatmap(
        z=z,
        zmin=0,
        zmax=1,
        text=text.tolist(),
        texttemplate="%{text}" if legible else None,
        textfont={"color": look.ink_on(color), "size": 12},
        hovertext=hover.tolist(),
        hoverinfo="text",
        hoverongaps=False,
        xgap=1,
        ygap=1,
        colorscale=[[0, color], [1, color]],
        showscale=False,
    )


def worst_first(tensors: pd.DataFrame) -> pd.DataFrame:
    """Order tensors by verdict, those that need a look first.

    Args:
        tensors: `MergeProof.tensors`.
    """
    verdicts = column(tensors, "verdict")
    ranked = sorted(range(len(verdicts)), key=lambda place: -ORDER[verdicts[place]])
    return tensors.iloc[ranked].drop(columns=["layer", "kind"]).reset_index(drop=True)


def palette(theme: Theme) -> dict[str, str]:
    """Verdict -> color: proven green, wrong in the colors of a warning, the rest gray."""
    pale = look.mix(theme.muted, theme.page, 0.25)
    return {
        "unchanged": look.mix(theme.muted, theme.page, 0.12),
        NOTHING: pale,
        "merged": theme.groups[2],
        "within rounding": look.mix(theme.groups[2], theme.page, 0.5),
        "added": pale,
        "not checkable": look.mix(theme.muted, theme.page, 0.5),
        "changed": theme.groups[3],
        "other base": theme.groups[3],
        "other alpha": theme.groups[1],
        "merged more than once": theme.groups[4],
        "not merged": theme.groups[0],
        "dropped": theme.accent,
    }
