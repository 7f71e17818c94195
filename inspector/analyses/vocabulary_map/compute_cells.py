"""Approximate nearest neighbors of large vocabularies: only near cells are searched.

Rows are put into cells by k-means (Lloyd 1982), and each row is compared with the members of the
cells whose centers are nearest to it (inverted file, Jégou et al. 2011). The recall is measured on
rows whose neighbors are known exactly, and more cells are searched until it is high enough.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from inspector.analyses.vocabulary_map.compute_neighbors import measured
from inspector.analyses.vocabulary_map.compute_search import USUAL, Search
from inspector.analyses.vocabulary_map.compute_umap.compiled import kernels
from inspector.progress import Progress

TRAINING_ROWS = 64  # rows for each center
ITERATIONS = 5  # of k-means
QUERIES = 8_192  # rows compared with a cell, or with the centers, at once

Judge = Callable[[np.ndarray], float]


def nearest_by_cells(
    rows: torch.Tensor, k: int, *, metric: str, home: Path, recall: Judge, progress: Progress, search: Search = USUAL
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find most of the k nearest rows of every row.

    Args:
        rows: What `comparable` made, on the CPU.
        k: 1 <= k < rows.
        metric: "cosine" or "euclidean".
        recall: Tells of neighbors, (rows, k), which share of the true ones they hold.
        search: The size of cells, and how many are searched.

    Returns:
        Row numbers and distances, both (rows, k), nearest first.
    """
    progress(None, "Assigning rows to cells")
    centers = find_centers(rows, cell_rows=search.cell_rows)
    near = nearest_cells(rows, centers, min(sum(search.rounds), len(centers)))
    order = torch.argsort(near[:, 0], stable=True)
    sizes = torch.bincount(near[:, 0], minlength=len(centers))
    members = order.split(sizes.tolist())
    met = _Search(rows, k, metric=metric, home=home)
    begin = 0
    for count in search.rounds:
        part = near[:, begin : begin + count]
        asking = queries_of_cells(part, len(centers))
        for cell, (inside, queries) in enumerate(zip(members, asking, strict=True)):
            met.compare(queries, inside)
            progress(cell / len(centers), f"Comparing nearby cells: {cell / len(centers):.0%}")
        begin += count
        if begin >= near.shape[1] or (met.full and recall(met.found) >= search.enough):
            break
    met.complete()
    found, best = torch.from_numpy(met.found), torch.from_numpy(met.best)
    return measured(rows, torch.arange(len(rows)), found, best, metric=metric)


def find_centers(rows: torch.Tensor, *, cell_rows: int) -> torch.Tensor:
    """Centers of cells by k-means on a sample drawn with a fixed seed, (cells, columns)."""
    count = max(1, len(rows) // cell_rows)
    generator = torch.Generator().manual_seed(0)
    sample = rows[torch.randperm(len(rows), generator=generator)[: TRAINING_ROWS * count]]
    centers = sample[:count].clone()
    for _ in range(ITERATIONS):
        cell = nearest_cells(sample, centers, 1)[:, 0]
        sums = torch.zeros_like(centers).index_add_(0, cell, sample)
        sizes = torch.bincount(cell, minlength=count)[:, None]
        centers = torch.where(sizes > 0, sums / sizes.clamp_min(1), centers)
    return centers


def nearest_cells(rows: torch.Tensor, centers: torch.Tensor, count: int) -> torch.Tensor:
    """The cells with the nearest centers, nearest first, (rows, count)."""
    halves = (centers * centers).sum(dim=1) / 2
    parts = ((part @ centers.T).sub_(halves).topk(count, dim=1).indices for part in rows.split(QUERIES))
    return torch.cat(list(parts))


def queries_of_cells(near: torch.Tensor, cells: int) -> tuple[torch.Tensor, ...]:
    """Turn "cells that a row asks" into "rows that ask a cell", by cell."""
    asked = near.flatten()
    order = torch.argsort(asked, stable=True)
    return (order // near.shape[1]).split(torch.bincount(asked, minlength=cells).tolist())


class _Search:
    """The best of each row so far."""

    def __init__(self, rows: torch.Tensor, k: int, *, metric: str, home: Path) -> None:
        self._rows = rows
        self._halves = (rows * rows).sum(dim=1) / 2 if metric == "euclidean" else None
        self._merge = kernels(home).merge_cell
        self.best = np.full((len(rows), k), -np.inf, dtype=np.float32)
        self.found = np.zeros((len(rows), k), dtype=np.int32)

    @property
    def full(self) -> bool:
        """Whether every row has met as many others as are wanted."""
        return bool(np.isfinite(self.best[:, -1]).all())

    def compare(self, queries: torch.Tensor, members: torch.Tensor) -> None:
        """Compare some rows with the members of a cell that they have not met before."""
        for group in members.split(QUERIES):
            inside = self._rows[group].T.contiguous()
            for part in queries.split(QUERIES):
                block = self._rows[part] @ inside
                if self._halves is not None:
                    block.sub_(self._halves[part, None]).sub_(self._halves[group])
                self._merge(block.numpy(), part.numpy(), group.numpy(), self.best, self.found)

    def complete(self) -> None:
        """Compare rows that met too few others, in small cells far out, with every row."""
        lacking = np.flatnonzero(~np.isfinite(self.best[:, -1]))
        self.best[lacking] = -np.inf
        everyone = torch.arange(len(self._rows))
        self.compare(torch.from_numpy(lacking), everyone)
