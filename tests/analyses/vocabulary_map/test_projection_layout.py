"""The layout's parts against umap-learn's, and its loops against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numba import get_num_threads, set_num_threads

from inspector.analyses.vocabulary_map.compute_neighbors import nearest
from inspector.analyses.vocabulary_map.compute_umap.compiled import kernels
from inspector.analyses.vocabulary_map.compute_umap.layout import CURVE, fuzzy_graph, lay_out, prune, rates
from inspector.analyses.vocabulary_map.compute_umap.layout import forces as forces_by_bits
from inspector.analyses.vocabulary_map.compute_umap_learn import load_umap_learn
from tests.analyses.vocabulary_map.test_neighbors import clustered
from tests.conftest import silent


def neighbor_graph(rows: int = 200, k: int = 10):
    matrix = clustered(rows, 12)
    found, far = nearest(matrix, torch.arange(rows), k, metric="euclidean")
    return matrix, found.numpy().astype(np.int32), far.numpy()


def test_the_graph_is_umaps(tmp_path):
    """umap-learn counts a row as its own first neighbor, at distance 0."""
    umap = load_umap_learn(tmp_path)
    matrix, found, far = neighbor_graph()
    own = np.arange(len(matrix), dtype=np.int32)[:, None]
    theirs, _, _ = umap.umap_.fuzzy_simplicial_set(
        matrix.numpy(),
        11,
        np.random.RandomState(0),
        "euclidean",
        knn_indices=np.hstack([own, found]),
        knn_dists=np.hstack([np.zeros_like(far[:, :1]), far]),
    )
    assert fuzzy_graph(found, far).toarray() == pytest.approx(theirs.toarray(), abs=2e-3)


def test_the_curve_is_umaps(tmp_path):
    umap = load_umap_learn(tmp_path)
    assert pytest.approx(umap.umap_.find_ab_params(1.0, 0.0), rel=1e-5) == CURVE


def test_forces_are_right_to_half_a_per_cent():
    a, b = CURVE
    squared = np.geomspace(1e-6, 1e4, 1_000).astype(np.float32)
    places = squared.view(np.int32) >> 16
    pull, push = forces_by_bits()
    exact = squared.astype(np.float64)
    assert pull[places] == pytest.approx(-2 * a * b * exact ** (b - 1) / (1 + a * exact**b), rel=0.01)
    assert push[places] == pytest.approx(2 * b / ((0.001 + exact) * (1 + a * exact**b)), rel=0.01)
    assert np.isfinite(pull).all()
    assert np.isfinite(push).all()


def test_edges_are_used_as_often_as_they_weigh():
    _, found, far = neighbor_graph()
    graph = fuzzy_graph(found, far)
    pruned, every = prune(graph, 50)
    assert (pruned.data >= graph.data.max() / 50).all()
    assert pruned.nnz == (graph.data >= graph.data.max() / 50).sum()
    assert every == pytest.approx(graph.data.max() / pruned.data)
    assert (rates(4).tolist(), rates(1).tolist()) == ([1, 27 / 64, 1 / 8, 1 / 64], [1])


def attract(now, ends, others, rate):
    """One epoch of attraction alone, in plain Python, by the formula."""
    a, b = CURVE
    after = now.astype(np.float64)
    for i in range(len(now)):
        for j in others[ends[i] : ends[i + 1]]:
            gap = after[i] - now[j]
            squared = (gap**2).sum()
            force = -2 * a * b * squared ** (b - 1) / (1 + a * squared**b)
            after[i] += rate * np.clip(force * gap, -4, 4)
    return after


@pytest.mark.parametrize("dimensions", [2, 3])
def test_an_epoch_by_plain_python(dimensions, tmp_path):
    rng = np.random.default_rng(0)
    now = rng.normal(scale=3, size=(30, dimensions)).astype(np.float32)
    ends = np.arange(0, 121, 4, dtype=np.int32)
    others = rng.integers(0, 30, 120).astype(np.int32)
    others = np.where(others == np.repeat(np.arange(30), 4), (others + 1) % 30, others)
    others = others.astype(np.int32)
    every = np.ones(120, dtype=np.float32)
    after, due = now.copy(), np.zeros(120, dtype=np.float32)
    pull, push = forces_by_bits()
    kernels(tmp_path).epoch(now, after, ends, others, every, due, pull, push, np.uint64(0), 0, np.float32(0.3), 0)
    assert after == pytest.approx(attract(now, ends, others, 0.3), abs=0.02)
    assert due.tolist() == [1.0] * 120
    # Random rows push: with nobody to pull, what lies together parts.
    nobody = np.zeros(120, dtype=np.float32)
    kernels(tmp_path).epoch(
        now * np.float32(0.01), after, ends, others, every, nobody, 0 * pull, push, np.uint64(0), 0,
        np.float32(0.3), 5,
    )  # fmt: skip
    assert after.std() > 10 * (now * 0.01).std()


def test_nothing_depends_on_the_number_of_threads(tmp_path):
    _, found, far = neighbor_graph()
    graph = fuzzy_graph(found, far)
    start = np.random.default_rng(0).normal(size=(200, 2))
    threads = get_num_threads()
    maps = []
    try:
        for count in {1, threads}:
            set_num_threads(count)
            maps.append(lay_out(graph, start, seed=2, home=tmp_path, progress=silent))
    finally:
        set_num_threads(threads)
    assert np.array_equal(maps[0], maps[-1])
