"""Where two rungs, two texts or two checkpoints name different tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from inspector.plotting.frames import columns, where


@dataclass(frozen=True, slots=True)
class Apart:
    """How two heat maps of one step compare."""

    positions: int  # that can be compared, from the first; 0: none
    changed: tuple[int, ...]  # among them: where the texts themselves differ
    compared: int  # cells
    cells: tuple[tuple[int, int], ...]  # (layer, position) with another top token, in order


def same_top(cells: pd.DataFrame, layer: int, first: str, second: str) -> tuple[int, int]:
    """Count the positions of a layer where two steps name the same top token.

    Returns:
        How many, and of how many.
    """
    here = where(cells, (cells["layer"] == layer) & (cells["rank"] == 0))
    tops = {rung: dict(columns(where(here, here["rung"] == rung), "position", "token_id")) for rung in (first, second)}
    both = tops[first].keys() & tops[second].keys()
    return sum(tops[first][place] == tops[second][place] for place in both), len(both)


def compare_cells(
    first: pd.DataFrame, second: pd.DataFrame, *, tokens: tuple[Sequence[str], Sequence[str]], layers: tuple[int, int]
) -> Apart:
    """Find the cells whose top tokens differ.

    Texts of equal length are compared position by position, others as far as they begin alike;
    models of different depth are not compared.

    Args:
        first: `Lens.cells` of one step.
        second: The same of the other text or checkpoint.
        tokens: Of both texts.
        layers: Number of layers of both, embeddings counted.
    """
    if layers[0] != layers[1]:
        return Apart(0, (), 0, ())
    positions = comparable(*tokens)
    tops = [_tops(cells, positions) for cells in (first, second)]
    both = sorted(tops[0].keys() & tops[1].keys())
    return Apart(
        positions=positions,
        changed=tuple(at for at in range(positions) if tokens[0][at] != tokens[1][at]),
        compared=len(both),
        cells=tuple(cell for cell in both if tops[0][cell] != tops[1][cell]),
    )


def comparable(first: Sequence[str], second: Sequence[str]) -> int:
    """Positions of two texts that can be compared, counted from the first."""
    if len(first) == len(second):
        return len(first)
    pairs = list(zip(first, second, strict=False))
    return next((at for at, (mine, other) in enumerate(pairs) if mine != other), len(pairs))


def _tops(cells: pd.DataFrame, positions: int) -> dict[tuple[int, int], str]:
    top = where(cells, (cells["rank"] == 0) & (cells["position"] < positions))
    return {(layer, position): token for layer, position, token in columns(top, "layer", "position", "token")}
