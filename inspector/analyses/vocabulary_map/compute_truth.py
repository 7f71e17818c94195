"""The true neighbors that a map is made from and judged by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from inspector.analyses.vocabulary_map.compute_cells import nearest_by_cells
from inspector.analyses.vocabulary_map.compute_neighbors import nearest_of, nearest_of_all
from inspector.analyses.vocabulary_map.compute_search import USUAL, Search
from inspector.analyses.vocabulary_map.compute_trust import JUDGED_NEIGHBORS, shared
from inspector.progress import Progress


@dataclass(frozen=True, slots=True)
class Truth:
    """Exact nearest neighbors of the rows that a map is judged by."""

    rows: np.ndarray  # (judged,), rising; every row, or a random sample drawn with a fixed seed
    nearest: np.ndarray  # (judged, at most 15), nearest first


@dataclass(frozen=True, slots=True)
class Neighbors:
    """Nearest neighbors of every row."""

    indices: np.ndarray  # (rows, k) of int32, nearest first
    distances: np.ndarray  # (rows, k) of float32
    recall: float  # share of the true neighbors found, 0..1; 1 exactly if the search was exact
    truth: Truth


def find_neighbors(
    rows: torch.Tensor, k: int, *, metric: str, home: Path, progress: Progress, search: Search = USUAL
) -> Neighbors:
    """Find the neighbors that a map is made from: of many rows on a CPU, most of them.

    Args:
        rows: What `comparable` made, on the device that is to compare them.
        k: At least 15, where there are so many others.
        metric: "cosine" or "euclidean".
        search: From how many rows on not all are compared with all.
    """
    judged = min(JUDGED_NEIGHBORS, k)
    if rows.device.type != "cpu" or len(rows) <= search.exact_rows:
        found, far = nearest_of_all(rows, k, metric=metric, home=home, progress=progress)
        indices = found.numpy().astype(np.int32)
        truth = Truth(np.arange(len(rows)), indices[:, :judged])
        return Neighbors(indices, far.numpy(), 1.0, truth)
    truth = sample_truth(rows, judged, metric=metric, progress=progress, search=search)

    def recall(found: np.ndarray) -> float:
        return float(shared(truth.nearest, found[truth.rows]).mean())

    found, far = nearest_by_cells(rows, k, metric=metric, home=home, recall=recall, progress=progress, search=search)
    indices = found.numpy()
    return Neighbors(indices, far.numpy(), recall(indices), truth)


def whole_truth(rows: torch.Tensor, *, metric: str, home: Path, progress: Progress) -> Truth:
    """Find the exact neighbors of every row, however long it takes.

    Args:
        rows: What `comparable` made.
        metric: "cosine" or "euclidean".
    """
    k = min(JUDGED_NEIGHBORS, len(rows) - 1)
    found, _ = nearest_of_all(rows, k, metric=metric, home=home, progress=progress)
    return Truth(np.arange(len(rows)), found.numpy().astype(np.int32))


def sample_truth(rows: torch.Tensor, k: int, *, metric: str, progress: Progress, search: Search = USUAL) -> Truth:
    """Find the exact neighbors of a sample of rows, at most 1,000 as a rule.

    Args:
        rows: What `comparable` made.
        k: 1 <= k < rows.
        metric: "cosine" or "euclidean".
    """
    progress(None, "Finding the true neighbors of a sample")
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randperm(len(rows), generator=generator)[: search.judged].sort().values
    found, _ = nearest_of(rows, chosen, k, metric=metric)
    return Truth(chosen.numpy(), found.numpy())
