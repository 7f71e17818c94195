"""Lay a neighbor graph out as UMAP does (McInnes, Healy & Melville 2018), in our own loops.

What differs from umap-learn, each measured by the share of true neighbors that the map keeps:
all points of an epoch move from where the others were before it, so that the result does not
depend on the number of threads; the learning rate falls with the third power, so that the last
epochs settle neighbors instead of shaking them; each edge draws 8 random rows, not 5; and the
points of a large vocabulary start farther apart, so that fewer epochs are enough.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inspector.analyses.vocabulary_map.compute_umap.compiled import kernels
from inspector.progress import Progress

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# 1 / (1 + a d^(2b)) fitted to exp(-d), which is UMAP's curve for spread = 1 and min_dist = 0.
CURVE = (1.9328084, 0.79049497)
NEGATIVES = 8  # random rows for each use of an edge; umap-learn's default is 5
FALL = 3  # power by which the learning rate falls to 0
NOISE = 1e-3  # of the start, so that equal rows part
LARGE = 10_000  # rows beyond which fewer epochs are enough, as in umap-learn
EXTENT = {False: 10.0, True: 30.0}  # of the start, by "is large"
EPOCHS = {False: 250, True: 60}
BISECTIONS = 40
SMALLEST = 1e-3  # bandwidth, of the mean distance


def fuzzy_graph(indices: np.ndarray, distances: np.ndarray) -> csr_matrix:
    """Weigh the edges of a neighbor graph: UMAP's fuzzy simplicial set.

    Args:
        indices: Nearest rows, the row itself left out, (rows, k).
        distances: To them, rising, (rows, k).

    Returns:
        Weights 0..1, symmetric, (rows, rows). A row's weights add up to log2(k + 1) before they
        are made symmetric (UMAP counts the row as a neighbor of itself).
    """
    from scipy.sparse import csr_matrix

    rows, k = indices.shape
    positive = np.where(distances > 0, distances, np.inf)
    nearest = positive.min(axis=1)
    nearest[~np.isfinite(nearest)] = 0
    gaps = np.maximum(distances - nearest[:, None], 0).astype(np.float32)
    width = _bandwidths(gaps, np.log2(k + 1))
    scale = np.where(nearest > 0, distances.mean(axis=1), distances.mean())
    width = np.maximum(width, np.maximum(SMALLEST * scale, np.finfo(np.float32).tiny))
    weights = np.exp(-gaps / width[:, None]).astype(np.float32)
    directed = csr_matrix((weights.ravel(), indices.ravel(), np.arange(0, rows * k + 1, k)), shape=(rows, rows))
    back = directed.T.tocsr()
    graph = (directed + back - directed.multiply(back)).tocsr()
    graph.sort_indices()
    return graph


def _bandwidths(gaps: np.ndarray, target: float) -> np.ndarray:
    """The widths at which exp(-gaps / width) adds up to the target, by bisection."""
    low = np.zeros(len(gaps), dtype=np.float32)
    high = np.full(len(gaps), np.inf, dtype=np.float32)
    middle = np.ones(len(gaps), dtype=np.float32)
    smallest = np.finfo(np.float32).tiny
    for _ in range(BISECTIONS):
        large = np.exp(-gaps / np.maximum(middle, smallest)[:, None]).sum(axis=1) > target
        high = np.where(large, middle, high)
        low = np.where(large, low, middle)
        doubled = np.minimum(middle, np.float32(1e30)) * 2
        with np.errstate(invalid="ignore"):
            middle = np.where(np.isinf(high), doubled, (low + high) / 2)
    return middle


def forces() -> tuple[np.ndarray, np.ndarray]:
    """Attraction and repulsion by the upper 16 bits of the squared distance in float32.

    Seven bits of the mantissa are among them, so a force is right to half a per cent; the places
    of negative numbers do not occur and are not there.
    """
    a, b = CURVE
    bits = (np.arange(1 << 15, dtype=np.int32) << 16) | (1 << 15)
    with np.errstate(all="ignore"):
        squared = bits.view(np.float32).astype(np.float64)
        pull = -2 * a * b * squared ** (b - 1) / (1 + a * squared**b)
        push = 2 * b / ((0.001 + squared) * (1 + a * squared**b))
    return tuple(np.nan_to_num(force, posinf=0, neginf=0).astype(np.float32) for force in (pull, push))  # type: ignore[return-value]


def starting_places(places: np.ndarray, seed: int) -> np.ndarray:
    """Scale places to the layout's extent and add a little noise, (rows, dimensions)."""
    low, high = places.min(axis=0), places.max(axis=0)
    scaled = EXTENT[len(places) > LARGE] * (places - low) / np.maximum(high - low, np.finfo(np.float32).tiny)
    noise = np.random.default_rng(seed).normal(scale=NOISE, size=places.shape)
    return np.ascontiguousarray(scaled + noise, dtype=np.float32)


def prune(graph: csr_matrix, epochs: int) -> tuple[csr_matrix, np.ndarray]:
    """Drop edges too light to be used once; tell how many epochs lie between uses of the rest."""
    graph = graph.copy()
    heaviest = graph.data.max(initial=0)
    graph.data[graph.data < heaviest / epochs] = 0
    graph.eliminate_zeros()
    return graph, (heaviest / graph.data).astype(np.float32)


def lay_out(
    graph: csr_matrix, start: np.ndarray, *, seed: int, home: Path, progress: Progress, epochs: int | None = None
) -> np.ndarray:
    """Find places at which neighbors attract and random rows repel each other.

    Args:
        graph: Weights of edges, (rows, rows).
        start: Where the points are at first, (rows, dimensions).
        seed: Of the noise and of the random rows; the same seed gives the same places on the
            same machine, whatever the number of threads.
        progress: Told the share of epochs done, and the seconds left.
        epochs: Steps; None: as many as are enough for so many rows.

    Returns:
        Places, (rows, dimensions) in float32.
    """
    epochs = epochs or EPOCHS[len(start) > LARGE]
    graph, every = prune(graph, epochs)
    now = starting_places(start, seed)
    clock = Clock(progress, epochs)
    progress(None, "Loading the map's compiled code (compiled once per machine)")
    loops = kernels(home)
    after, due = now.copy(), every.copy()
    pull, push = forces()
    ends, others = graph.indptr.astype(np.int32), graph.indices.astype(np.int32)
    for number, rate in enumerate(rates(epochs)):
        loops.epoch(now, after, ends, others, every, due, pull, push, np.uint64(seed), number, rate, NEGATIVES)
        now, after = after, now
        clock.done(number + 1)
    return now


def rates(epochs: int) -> np.ndarray:
    """The learning rate of each epoch, falling from 1 toward 0."""
    return ((1 - np.arange(epochs) / epochs) ** FALL).astype(np.float32)


class Clock:
    """Tells progress: epochs done, and the seconds left at the pace so far."""

    def __init__(self, progress: Progress, epochs: int) -> None:
        self._progress, self._epochs = progress, epochs
        self._started = time.monotonic()

    def done(self, number: int) -> None:
        """Say that so many epochs are done."""
        left = (time.monotonic() - self._started) * (self._epochs / number - 1)
        self._progress(number / self._epochs, f"UMAP: epoch {number} of {self._epochs}, about {left:.0f} s left")
