"""How far neighbors are searched for, and how many rows a map is judged by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Search:
    """From how many rows on less is done than everything, and how much."""

    quick_rows: int = 6_000  # of a PCA whose rows are all judged: that takes no time
    exact_rows: int = 10_000  # beyond, all pairs take longer on a CPU than the rest of a map
    judged: int = 1_000  # rows that stand for all where not all are judged
    cell_rows: int = 512  # members of a cell, on average
    rounds: tuple[int, ...] = (8, 8, 16)  # further cells that each row is compared with
    enough: float = 0.8  # recall at which no further cell is searched: a map made of more is no better


USUAL = Search()
