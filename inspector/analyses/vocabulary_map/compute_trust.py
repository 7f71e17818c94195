"""How far a map can be trusted: which true neighbors it keeps, and what another seed changes."""

from __future__ import annotations

import numpy as np

JUDGED_NEIGHBORS = 15
TIE_BREAK = 1e-6  # of the map's extent: equal places get a random order, not that of the rows


def neighbors_on_map(places: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """Find the k nearest points on a map by Euclidean distance, the point itself left out.

    Args:
        places: (points, 2 or 3), finite.
        rows: Points whose neighbors are wanted.
        k: 1 <= k < points.

    Returns:
        Their numbers, (rows, k), nearest first; among points in one place the order is random,
        with a fixed seed.
    """
    from scipy.spatial import KDTree

    places = places.astype(np.float64)
    extent = np.ptp(places, axis=0).max() or 1.0
    places += np.random.default_rng(0).uniform(-1, 1, places.shape) * extent * TIE_BREAK
    found = np.asarray(KDTree(places).query(places[rows], k=k + 1, workers=-1)[1])
    others = found != rows[:, None]
    others[others.all(axis=1), -1] = False  # itself lost against equals: drop the farthest
    return found[others].reshape(len(rows), k)


def shared(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Share of the neighbors in `first` that are in `second` as well, by row, 0..1.

    Args:
        first: Row numbers without repetition, (rows, k).
        second: Likewise, (rows, any).
    """
    return (first[:, :, None] == second[:, None, :]).any(axis=2).mean(axis=1, dtype=np.float32)


def trust(places: np.ndarray, rows: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Share of each row's true nearest neighbors that are among as many nearest on the map.

    The mean over all rows is the "kept neighbors" of a map, 1 minus which Venna & Kaski (2001)
    and Lee & Verleysen (2009, Q_NX) study under various names.

    Args:
        places: The map, (points, 2 or 3).
        rows: Points that are judged, (rows,).
        truth: Their nearest neighbors in the original space, (rows, k).
    """
    return shared(truth, neighbors_on_map(places, rows, truth.shape[1]))


def stability(places: np.ndarray, again: np.ndarray, k: int) -> np.ndarray:
    """Share of each point's k nearest on one map that are among its k nearest on another.

    Args:
        places: (points, 2 or 3).
        again: The same points under another seed.
        k: 1 <= k < points.
    """
    everyone = np.arange(len(places))
    return shared(neighbors_on_map(places, everyone, k), neighbors_on_map(again, everyone, k))
