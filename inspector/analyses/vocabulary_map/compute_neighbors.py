"""Exact nearest neighbors by blocked matrix products."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from inspector.analyses.vocabulary_map.compute_umap.compiled import kernels
from inspector.models.vocabulary.rows import blocks
from inspector.progress import Progress

BLOCK_NUMEL = 1 << 25  # numbers in one block of distances: 128 MB in float32
SMALL_ROWS = 6_000  # up to which plain torch is quick: no waiting for compiled code
BLOCK_ROWS = 2_048  # of both sides of a block when all rows are compared with all


def comparable(matrix: torch.Tensor, *, metric: str) -> torch.Tensor:
    """Copy rows to float32 so that products compare them.

    Args:
        matrix: (rows, columns), finite, of any floating dtype.
        metric: "cosine": rows of length 1, zero rows left zero. "euclidean": the mean row taken
            off, which moves no two rows apart and keeps the digits that tell them apart.
    """
    copy = torch.empty(matrix.shape)
    if metric == "cosine":
        for place, block in blocks(matrix):
            # Scaled first: the squares of very long or very short rows are no float32.
            scale = block.abs().amax(dim=1, keepdim=True)
            copy[place] = block / torch.where(scale > 0, scale, 1)
            copy[place] /= torch.linalg.vector_norm(copy[place], dim=1, keepdim=True).clamp_min(1)
        return copy
    mean = sum(block.double().sum(dim=0) for _, block in blocks(matrix)) / max(len(matrix), 1)
    for place, block in blocks(matrix):
        copy[place] = (block.double() - mean).float()
    return copy


def nearest(
    matrix: torch.Tensor, queries: torch.Tensor, k: int, *, metric: str, progress: Progress | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the k nearest rows of some rows, the row itself left out.

    Args:
        matrix: (rows, columns), finite.
        queries: Row numbers, (queries,).
        k: 1 <= k < rows.
        metric: "cosine" or "euclidean".

    Returns:
        Row numbers and distances, both (queries, k), nearest first. The cosine distance is
        1 - cosine, in 0..2; a zero row is at distance 1 from every other.
    """
    return nearest_of(comparable(matrix, metric=metric), queries, k, metric=metric, progress=progress)


def nearest_of(
    rows: torch.Tensor, queries: torch.Tensor, k: int, *, metric: str, progress: Progress | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same for rows that `comparable` made, on the device that they are on."""
    halves = _halves(rows, metric)
    indices, distances = [], []
    for part in queries.to(rows.device).split(max(1, BLOCK_NUMEL // len(rows))):
        block = rows[part] @ rows.T
        if halves is not None:
            block -= halves
        block[torch.arange(len(part), device=rows.device), part] = -torch.inf
        best = block.topk(k)
        found, far = measured(rows, part, best.indices, best.values, metric=metric)
        indices.append(found.cpu())
        distances.append(far.cpu())
        if progress:
            done = sum(map(len, indices)) / len(queries)
            progress(done, f"Finding neighbors: {done:.0%}")
    return torch.cat(indices), torch.cat(distances)


def nearest_of_all(
    rows: torch.Tensor,
    k: int,
    *,
    metric: str,
    home: Path,
    progress: Progress,
    small_rows: int = SMALL_ROWS,
    block_rows: int = BLOCK_ROWS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the k nearest rows of every row; each pair of rows is compared once.

    Args:
        rows: What `comparable` made.
        k: 1 <= k < rows.
        metric: "cosine" or "euclidean".
        small_rows: Up to which plain torch is quick.
        block_rows: Of both sides of a block.

    Returns:
        As of `nearest`.
    """
    if rows.device.type != "cpu" or len(rows) <= small_rows:
        everyone = torch.arange(len(rows))
        return nearest_of(rows, everyone, k, metric=metric, progress=progress)
    loops = kernels(home)
    halves = _halves(rows, metric)
    best = np.full((len(rows), k), -np.inf, dtype=np.float32)
    found = np.zeros((len(rows), k), dtype=np.int32)
    starts = range(0, len(rows), block_rows)
    pairs, done = len(starts) * (len(starts) + 1) // 2, 0
    for first in starts:
        for second in range(first, len(rows), block_rows):
            block = _similarities(rows, halves, slice(first, first + block_rows), slice(second, second + block_rows))
            loops.merge_rows(block, first, second, best, found)
            if second != first:
                loops.merge_columns(block, second, first, best, found)
            done += 1
            progress(done / pairs, f"Finding neighbors: {done / pairs:.0%}")
    everyone = torch.arange(len(rows))
    return measured(rows, everyone, torch.from_numpy(found), torch.from_numpy(best), metric=metric)


def _halves(rows: torch.Tensor, metric: str) -> torch.Tensor | None:
    """What is taken off x·y so that the largest is nearest: |y|²/2 for "euclidean"."""
    return (rows * rows).sum(dim=1) / 2 if metric == "euclidean" else None


def _similarities(rows: torch.Tensor, halves: torch.Tensor | None, first: slice, second: slice) -> np.ndarray:
    block = rows[first] @ rows[second].T
    if halves is not None:
        block -= halves[first, None]
        block -= halves[second]
    return block.numpy()


def measured(
    rows: torch.Tensor, queries: torch.Tensor, found: torch.Tensor, values: torch.Tensor, *, metric: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Turn what was compared into distances, nearest first.

    Args:
        rows: What `comparable` made.
        queries: Row numbers, (queries,).
        found: Their neighbors, (queries, k).
        values: Cosines; not read for "euclidean", where the difference of large squares would
            tell nothing of small distances: they are measured again.
        metric: "cosine" or "euclidean".
    """
    if metric == "cosine":
        return found, (1 - values).clamp_(0, 2)
    parts = []
    size = max(1, BLOCK_NUMEL // (found.shape[1] * rows.shape[1]))
    for asking, near in zip(queries.split(size), found.split(size), strict=True):
        parts.append(torch.linalg.vector_norm(rows[near.long()] - rows[asking][:, None], dim=2))
    distances, order = torch.cat(parts).sort(dim=1, stable=True)
    return found.gather(1, order), distances
