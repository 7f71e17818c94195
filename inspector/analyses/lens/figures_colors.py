"""What colors the cells of the lens: probability, entropy, a rank, or agreement."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from inspector.plotting.frames import column, columns, where

# What may be chosen -> the column of the states that holds it; None: of another table.
COLORINGS: dict[str, str | None] = {
    "probability": None,
    "cosine": None,
    "entropy": "entropy",
    "agreement with the last layer": "agrees",
    "overlap with the logits": "overlap",
    "rank of a pinned token": None,
}
AGREES, DIFFERS = "✓", "≠"  # beside the token, so that color is never the only sign


@dataclass(frozen=True, slots=True)
class Coloring:
    """One number a cell, and how it becomes a color; the strong end is the good one."""

    name: str
    values: dict[tuple[int, int], float]  # (layer, position) -> what is drawn
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    falling: bool = False  # small numbers get the strong color
    unit: str = ""
    digits: int = 3
    logarithm: bool = False  # values are log10 of a rank from 1
    signs: frozenset[tuple[int, int]] = frozenset()  # cells with a sign beside their token
    sign: str = AGREES

    def told(self, cell: tuple[int, int]) -> str:
        """The cell's number in words; "" where it has none."""
        value = self.values.get(cell, np.nan)
        if not np.isfinite(value):
            return ""
        number = f"{round(10**value):,}" if self.logarithm else f"{value:.{self.digits}g}"
        return f"{self.name}: {number}{self.unit}"


def offered(rung: str, *, states: pd.DataFrame, pinned: pd.DataFrame) -> list[str]:
    """What may color the cells of a rung: what the tables hold numbers of."""
    held = [
        name
        for name, source in COLORINGS.items()
        if source in states and not all(map(math.isnan, column(states, str(source))))
    ]
    first = "cosine" if rung == "cosine" else "probability"
    return [first, *held, *(["rank of a pinned token"] if len(pinned) else [])]


def color_cells(by: str, *, cells: pd.DataFrame, states: pd.DataFrame, pinned: pd.DataFrame) -> Coloring:
    """Choose each cell's number.

    Args:
        by: One of COLORINGS.
        cells: `Lens.cells` of one step.
        states: `Lens.states` of the step.
        pinned: `Lens.pinned` of the step and one token.
    """
    source = COLORINGS[by]
    if by == "rank of a pinned token":
        return _by_rank(pinned)
    if source is None:
        top = where(cells, cells["rank"] == 0)
        values = _values(top, "score" if by == "cosine" else "probability")
        low, high = (0.0, 1.0) if by == "probability" else _range(values)
        ticks = ((0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")) if by == "probability" else ()
        return Coloring(by, values, low, high, ticks)
    values = _values(states, source)
    if by == "entropy":
        return Coloring(by, values, 0.0, _range(values)[1], falling=True, unit=" nats")
    if by == "overlap with the logits":
        ticks = ((0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %"))
        return Coloring(by, values, 0.0, 1.0, ticks)
    same = frozenset(cell for cell, value in values.items() if value == 1)
    ticks = ((0.0, "different token"), (1.0, f"{AGREES} the same"))
    return Coloring(by, values, 0.0, 1.0, ticks, signs=same)


def on_one_scale(first: Coloring, second: Coloring) -> tuple[Coloring, Coloring]:
    """Give two colorings the range of both, so that equal colors mean equal numbers."""
    low, high = min(first.low, second.low), max(first.high, second.high)
    ticks = max(first.ticks, second.ticks, key=len)
    return (replace(first, low=low, high=high, ticks=ticks), replace(second, low=low, high=high, ticks=ticks))


def _by_rank(pinned: pd.DataFrame) -> Coloring:
    token = next(iter(column(pinned, "token")), "")
    values = {cell: float(np.log10(rank + 1)) for cell, rank in _values(pinned, "rank").items()}
    high = max(1.0, float(np.ceil(max(values.values(), default=1.0))))
    ticks = tuple((float(power), f"{10**power:,}") for power in range(int(high) + 1))
    first = frozenset(cell for cell, value in values.items() if value == 0)
    return Coloring(f"rank of {token}", values, 0.0, high, ticks, falling=True, logarithm=True, signs=first)


def _values(frame: pd.DataFrame, value: str) -> dict[tuple[int, int], float]:
    return {(layer, position): float(number) for layer, position, number in columns(frame, "layer", "position", value)}


def _range(values: dict[tuple[int, int], float]) -> tuple[float, float]:
    finite = [value for value in values.values() if np.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    return low, high if high > low else low + 1.0
