"""Principal components of an embedding matrix, one block of rows at a time."""

from __future__ import annotations

import numpy as np
import torch

from inspector.models.vocabulary.rows import BLOCK_NUMEL, blocks
from inspector.progress import EVERY, Pace, Progress, no_progress

DENSE_COLUMNS = 1_024  # beyond, only the wanted eigenvectors are computed
SUMMED_ROWS = 1 << 13  # whose products are added in float32, before they go into the sum in float64


def principal_components(
    matrix: torch.Tensor,
    dimensions: int,
    *,
    progress: Progress = no_progress,
    numel: int = BLOCK_NUMEL,
    summed_rows: int = SUMMED_ROWS,
    every: float = EVERY,
) -> tuple[np.ndarray, tuple[float, ...]]:
    """Project centered rows on the directions of largest variance (Pearson 1901).

    Args:
        matrix: (rows, columns), finite, of any floating dtype.
        dimensions: At most columns.
        progress: Told how much of the matrix is done, and how long the rest takes.
        numel: Numbers in one block.
        summed_rows: Whose products are added in float32.
        every: Seconds between two reports of progress.

    Returns:
        Places, (rows, dimensions) in float32, and each axis' share of the variance, 0..1. Signs
        are fixed: the largest entry of each direction is positive.
    """
    columns = matrix.shape[1]
    mean = torch.zeros(columns, dtype=torch.float64)
    for _, block in blocks(matrix, numel=numel):
        mean += block.sum(dim=0, dtype=torch.float64)
    middle = (mean / len(matrix)).float()
    pace = Pace(progress, "Computing the principal components", matrix.nbytes, every=every)
    covariance = _covariance(matrix, middle, pace, numel=numel, summed_rows=summed_rows)
    values, vectors = _largest(covariance, dimensions)
    largest = vectors.abs().argmax(dim=0)
    vectors = vectors * vectors[largest, torch.arange(dimensions)].sign()
    share = values / covariance.trace().clamp_min(1e-300)
    places = torch.empty((len(matrix), dimensions))
    for place, block in blocks(matrix, numel=numel):
        places[place] = (block - middle) @ vectors.float()
    return places.numpy(), tuple(share.tolist())


def _covariance(
    matrix: torch.Tensor, middle: torch.Tensor, pace: Pace, *, numel: int, summed_rows: int
) -> torch.Tensor:
    """Covariance of the columns, (columns, columns) in float64; of wide matrices it takes minutes."""
    columns = matrix.shape[1]
    covariance = torch.zeros((columns, columns), dtype=torch.float64)
    products, rows = torch.zeros((columns, columns)), 0
    for place, block in blocks(matrix, numel=numel):
        centered = block - middle
        products.addmm_(centered.T, centered)
        rows += len(block)
        if rows >= summed_rows or place.stop == len(matrix):
            covariance += products
            products.zero_()
            rows = 0
        pace.add(len(block) * columns * matrix.element_size())
    return covariance / max(len(matrix) - 1, 1)


def _largest(covariance: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest eigenvalues, falling, and their vectors, (columns, count)."""
    if len(covariance) <= DENSE_COLUMNS:
        values, vectors = torch.linalg.eigh(covariance)
    else:
        from scipy.sparse.linalg import eigsh

        start = np.random.default_rng(0).normal(size=len(covariance))
        found = eigsh(covariance.numpy(), k=count, v0=start)
        order = np.argsort(found[0])
        values, vectors = (torch.from_numpy(each[..., order].copy()) for each in found)
    return values.flip(0)[:count].clamp_min(0), vectors.flip(1)[:, :count]
