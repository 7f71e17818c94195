"""Principal components of an embedding matrix, one block of rows at a time."""

from __future__ import annotations

import numpy as np
import torch

from inspector.models.vocabulary.rows import blocks

DENSE_COLUMNS = 1_024  # beyond, only the wanted eigenvectors are computed


def principal_components(matrix: torch.Tensor, dimensions: int) -> tuple[np.ndarray, tuple[float, ...]]:
    """Project centered rows on the directions of largest variance (Pearson 1901).

    Args:
        matrix: (rows, columns), finite, of any floating dtype.
        dimensions: At most columns.

    Returns:
        Places, (rows, dimensions) in float32, and each axis' share of the variance, 0..1. Signs
        are fixed: the largest entry of each direction is positive.
    """
    columns = matrix.shape[1]
    mean = torch.zeros(columns, dtype=torch.float64)
    for _, block in blocks(matrix):
        mean += block.sum(dim=0, dtype=torch.float64)
    middle = (mean / len(matrix)).float()
    covariance = torch.zeros((columns, columns), dtype=torch.float64)
    for _, block in blocks(matrix):
        centerd = block - middle
        covariance += (centerd.T @ centerd).double()
    covariance /= max(len(matrix) - 1, 1)
    values, vectors = _largest(covariance, dimensions)
    largest = vectors.abs().argmax(dim=0)
    vectors = vectors * vectors[largest, torch.arange(dimensions)].sign()
    share = values / covariance.trace().clamp_min(1e-300)
    places = torch.empty((len(matrix), dimensions))
    for place, block in blocks(matrix):
        places[place] = (block - middle) @ vectors.float()
    return places.numpy(), tuple(share.tolist())


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
