"""Count the tokens of a plane in cells, symmetrical about no difference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from inspector.plotting.frames import columns
from inspector.text import plain, plural, shorten

ACROSS, UP = 64, 41  # cells; an odd number of rows, so that one of them is "no difference"
NAMED, LETTERS = 3, 16  # tokens that a cell names
LABELS = 0.14  # share of the width that stays free on the right, for the most likely tokens' names


@dataclass(frozen=True, slots=True)
class Cells:
    """How many tokens fall where."""

    across: np.ndarray  # edges in likelihood, ascending, (columns + 1,)
    up: np.ndarray  # edges in difference, symmetrical about 0, (rows + 1,)
    counts: np.ndarray  # (rows, columns)
    hovers: list[list[str]]  # (rows, columns); "" where nothing is

    @property
    def total(self) -> int:
        """Tokens in all cells."""
        return int(self.counts.sum())

    @property
    def rows(self) -> int:
        """Cells one above the other."""
        return len(self.up) - 1

    @property
    def middle(self) -> int:
        """The row that lies about no difference."""
        return self.rows // 2


def count_cells(drawn: pd.DataFrame, *, skip: np.ndarray, least: float) -> Cells:
    """Count tokens in cells that cover all of them.

    Args:
        drawn: token_id, token, likelihood, difference, all finite.
        skip: Ids that are not counted: they are drawn themselves.
        least: The vertical axis reaches at least so far up and down.
    """
    likelihood = drawn["likelihood"].to_numpy(dtype=float)
    difference = drawn["difference"].to_numpy(dtype=float)
    low, high = (likelihood.min(), likelihood.max()) if len(drawn) else (-1.0, 0.0)
    left, right = (max(share * (high - low), 0.2) for share in (0.03, LABELS))
    across = np.linspace(low - left, high + right, ACROSS + 1)
    top = max(1.06 * float(np.abs(difference).max(initial=0.0)), least)
    up = np.linspace(-top, top, UP + 1)
    kept = ~np.isin(drawn["token_id"].to_numpy(), skip)
    columns_of = np.searchsorted(across, likelihood[kept], side="right") - 1
    rows_of = np.searchsorted(up, difference[kept], side="right") - 1
    counts = np.zeros((UP, ACROSS), dtype=int)
    np.add.at(counts, (rows_of, columns_of), 1)
    named = pd.DataFrame(drawn[kept]).assign(row=rows_of, column=columns_of)
    return Cells(across, up, counts, _hovers(named, counts))


def _hovers(named: pd.DataFrame, counts: np.ndarray) -> list[list[str]]:
    """Name the most likely tokens of every cell."""
    hovers = [[""] * counts.shape[1] for _ in range(counts.shape[0])]
    first = named.sort_values("likelihood", ascending=False).groupby(["row", "column"]).head(NAMED)
    tokens: dict[tuple[int, int], list[str]] = {}
    for row, across, token in columns(first, "row", "column", "token"):
        tokens.setdefault((row, across), []).append(plain(shorten(token, LETTERS)))
    for (row, across), names in tokens.items():
        count = int(counts[row, across])
        more = " …" if count > len(names) else ""
        hovers[row][across] = f"{plural(count, 'token')} here: {', '.join(names)}{more}"
    return hovers
