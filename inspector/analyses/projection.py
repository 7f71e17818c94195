"""Project the whole vocabulary into two or three dimensions."""

from __future__ import annotations

import io
import time

import numpy as np
import torch

from inspector.analyses import Progress
from inspector.analyses.embeddings import label_rows, not_finite_warning
from inspector.analyses.neighbours import kept_neighbours, nearest
from inspector.errors import NotInCheckpointError, RequestError
from inspector.models.checkpoint import Checkpoint
from inspector.results import Projection

AXES = ("x", "y", "z")
MIN_DIST = 0.1  # of UMAP; its default


def project(
    checkpoint: Checkpoint,
    *,
    progress: Progress,
    method: str = "pca",
    dimensions: int = 2,
    neighbours: int = 15,
    metric: str = "cosine",
    seed: int = 0,
) -> Projection:
    """Map every row of the input embedding matrix; none is sampled away.

    Args:
        checkpoint: What to read.
        progress: Told the share done and what is being done.
        method: "pca" (of the centred rows), or "umap" (McInnes et al. 2018, by umap-learn, given
            exact neighbours and a PCA start).
        dimensions: 2 or 3.
        neighbours: UMAP's n_neighbors, 2..200.
        metric: Of the neighbours, "cosine" or "euclidean".
        seed: Of UMAP's random choices; the same seed gives the same map on the same machine.

    Returns:
        A point for every finite row.

    Raises:
        NotInCheckpointError: If there is no embedding matrix.
        RequestError: If a parameter is out of range.
    """
    _check(method, dimensions, neighbours, metric, seed)
    progress(None, "Reading the embedding matrix")
    started = time.perf_counter()
    matrix = checkpoint.embedding_matrix().float()
    points = label_rows(checkpoint, len(matrix))
    finite = torch.isfinite(matrix).all(dim=1)
    warnings = list(not_finite_warning(points, finite))
    points = points.loc[finite.numpy()].reset_index(drop=True)
    matrix = matrix[finite] if not finite.all() else matrix
    dimensions_there = min(matrix.shape)
    if len(matrix) < 2 or dimensions_there < dimensions:
        raise NotInCheckpointError(
            f"{len(matrix)} × {matrix.shape[1]} embeddings are too few for a map in "
            f"{dimensions} dimensions."
        )
    if method == "umap" and len(matrix) <= neighbours + 1:
        method = "pca"
        warnings.append(
            f"UMAP needs more than {neighbours + 1} tokens and there are {len(matrix)}: "
            "this is a PCA."
        )
    progress(None, "Computing the principal components")
    places, explained = principal_components(matrix, dimensions)
    if method == "umap":
        places = umap_layout(
            matrix, places, neighbours=neighbours, metric=metric, seed=seed, progress=progress
        )
    seconds = time.perf_counter() - started
    progress(None, "Checking how many neighbours the map keeps")
    kept = kept_neighbours(matrix, torch.from_numpy(places), metric=metric)
    for axis, values in zip(AXES, places.T, strict=False):
        points[axis] = values.astype(np.float32)
    points["norm"] = torch.linalg.vector_norm(matrix, dim=1).numpy()
    points["token_id"] = points["token_id"].astype(np.int32)
    return Projection(
        method=method,
        dimensions=dimensions,
        rows=len(points),
        seconds=seconds,
        kept_neighbours=kept,
        file=None,
        warnings=tuple(warnings),
        points=points.reindex(columns=["token_id", "token", *AXES[:dimensions], "norm", "kind"]),
        explained=explained if method == "pca" else (),
    )


def _check(method: str, dimensions: int, neighbours: int, metric: str, seed: int) -> None:
    if method not in ("pca", "umap"):
        raise RequestError(f"There is no method {method!r}: use pca or umap.")
    if dimensions not in (2, 3):
        raise RequestError(f"A map has 2 or 3 dimensions, not {dimensions}.")
    if metric not in ("cosine", "euclidean"):
        raise RequestError(f"There is no metric {metric!r} for a map: use cosine or euclidean.")
    if not 2 <= neighbours <= 200:
        raise RequestError(f"neighbours is {neighbours}: use 2 to 200.")
    if not 0 <= seed < 2**32:
        raise RequestError(f"seed is {seed}: use a number from 0 to 4294967295.")


def principal_components(
    matrix: torch.Tensor, dimensions: int
) -> tuple[np.ndarray, tuple[float, ...]]:
    """Project centred rows on the directions of largest variance (Pearson 1901).

    Args:
        matrix: (rows, columns), finite.
        dimensions: At most columns.

    Returns:
        Places, (rows, dimensions) in float32, and each axis' share of the variance, 0..1. Signs
        are fixed: the largest entry of each direction is positive.
    """
    centred = matrix - matrix.mean(dim=0)
    covariance = (centred.T @ centred).double() / max(len(matrix) - 1, 1)
    values, vectors = torch.linalg.eigh(covariance)
    values, vectors = values.flip(0).clamp_min(0), vectors.flip(1)[:, :dimensions]
    largest = vectors.abs().argmax(dim=0)
    vectors = vectors * vectors[largest, torch.arange(dimensions)].sign()
    share = values[:dimensions] / values.sum().clamp_min(1e-300)
    places = centred @ vectors.float()
    return places.numpy(), tuple(share.tolist())


def umap_layout(
    matrix: torch.Tensor,
    start: np.ndarray,
    *,
    neighbours: int,
    metric: str,
    seed: int,
    progress: Progress,
) -> np.ndarray:
    """Lay rows out by UMAP from exact neighbours, (rows, dimensions) in float32."""
    rows = torch.arange(len(matrix))
    found, distances = nearest(matrix, rows, neighbours - 1, metric=metric, progress=progress)
    # UMAP counts a row as its own first neighbour.
    indices = torch.cat([rows[:, None], found], dim=1).numpy()
    distances = torch.cat([torch.zeros(len(matrix), 1), distances], dim=1).numpy()
    progress(None, "Loading UMAP (compiles its code the first time)")
    import umap

    spread = np.abs(start).max() or 1.0
    noise = np.random.default_rng(seed).normal(scale=1e-4, size=start.shape)
    layout = umap.UMAP(
        n_components=start.shape[1],
        n_neighbors=neighbours,
        metric=metric,
        min_dist=MIN_DIST,
        init=(start / spread * 10 + noise).astype(np.float32),  # type: ignore[arg-type]
        random_state=seed,
        n_jobs=1,
        precomputed_knn=(indices.astype(np.int32), distances.astype(np.float32), None),
        tqdm_kwds={
            "disable": False,
            "file": _Epochs(progress),
            "bar_format": "{n_fmt}/{total_fmt}",
            "mininterval": 0.2,
        },
    )
    return np.ascontiguousarray(layout.fit_transform(matrix.numpy()), dtype=np.float32)


class _Epochs(io.TextIOBase):
    """A file that takes tqdm's "37/200" and tells it as progress."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def write(self, text: str) -> int:
        done, slash, total = text.strip().partition("/")
        if slash and done.isdecimal() and total.isdecimal():
            self._progress(int(done) / int(total), f"UMAP: epoch {done} of {total}")
        return len(text)
