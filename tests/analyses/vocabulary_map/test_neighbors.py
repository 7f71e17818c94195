"""Neighbors by every way of finding them against brute force, one pair of rows after the other."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from inspector.analyses.vocabulary_map.compute_cells import nearest_by_cells
from inspector.analyses.vocabulary_map.compute_neighbors import comparable, nearest, nearest_of_all
from inspector.analyses.vocabulary_map.compute_search import Search
from inspector.analyses.vocabulary_map.compute_truth import find_neighbors
from tests.conftest import silent

METRICS = ["cosine", "euclidean"]


def clustered(rows: int, columns: int, *, clusters: int = 8, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    centers = 4 * torch.randn(clusters, columns, generator=generator)
    which = torch.randint(clusters, (rows,), generator=generator)
    return centers[which] + torch.randn(rows, columns, generator=generator)


def distance(first: np.ndarray, second: np.ndarray, metric: str) -> float:
    if metric == "euclidean":
        return float(np.sqrt(((first - second) ** 2).sum()))
    lengths = np.sqrt((first**2).sum()) * np.sqrt((second**2).sum())
    return float(1 - (first @ second) / lengths) if lengths else 1.0


def brute_force(matrix: torch.Tensor, row: int, k: int, metric: str) -> tuple[list[int], list]:
    rows = matrix.double().numpy()
    far = {j: distance(rows[row], rows[j], metric) for j in range(len(rows)) if j != row}
    best = sorted(far, key=far.__getitem__)[:k]
    return best, [far[j] for j in best]


def assert_exact(matrix, indices, distances, *, metric, rows):
    k = indices.shape[1]
    for place, row in enumerate(rows):
        best, far = brute_force(matrix, row, k, metric)
        assert indices[place].tolist() == best
        assert distances[place].tolist() == pytest.approx(far, abs=1e-5, rel=1e-4)


# Several blocks, a last one that is not full, and compiled code also for few rows.
SMALL_BLOCKS = {"block_rows": 37, "small_rows": 0}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_of_some_rows(metric, dtype):
    matrix = torch.randn(50, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    indices, distances = nearest(matrix, torch.tensor([4, 17]), 6, metric=metric)
    assert_exact(matrix, indices, distances, metric=metric, rows=(4, 17))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("blocks", ["compiled", "plain"])
def test_of_all_rows(metric, blocks, tmp_path):
    matrix = clustered(150, 12)
    seen: list[float | None] = []
    indices, distances = nearest_of_all(
        comparable(matrix, metric=metric), 9, metric=metric, home=tmp_path,
        progress=lambda fraction, _: seen.append(fraction), **(SMALL_BLOCKS if blocks == "compiled" else {}),
    )  # fmt: skip
    assert_exact(matrix, indices, distances, metric=metric, rows=range(150))
    assert seen[-1] == 1.0


@pytest.mark.parametrize("metric", METRICS)
def test_rows_that_are_zero_or_equal(metric, tmp_path):
    matrix = clustered(90, 6)
    matrix[10] = 0
    matrix[20:30] = matrix[20]
    rows = comparable(matrix, metric=metric)
    indices, distances = nearest_of_all(rows, 5, metric=metric, home=tmp_path, progress=silent, **SMALL_BLOCKS)
    everyone = torch.arange(90)[:, None]
    assert not (indices == everyone).any()
    assert all(len(set(row)) == 5 for row in indices.tolist())
    assert set(indices[20].tolist()) <= set(range(20, 30))
    assert distances[20].tolist() == pytest.approx([0] * 5, abs=1e-5)
    if metric == "cosine":
        assert distances[10].tolist() == pytest.approx([1] * 5)
    assert torch.isfinite(distances).all()


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_cosine_of_very_long_and_very_short_rows(scale):
    matrix = clustered(40, 6)
    indices, _ = nearest(matrix * scale, torch.arange(40), 4, metric="cosine")
    assert indices.equal(nearest(matrix, torch.arange(40), 4, metric="cosine")[0])


def test_euclidean_distances_far_from_the_origin():
    """Rows that share a large mean keep the digits that tell them apart."""
    matrix = torch.randn(60, 4, generator=torch.Generator().manual_seed(2)) + 300
    indices, distances = nearest(matrix, torch.arange(60), 3, metric="euclidean")
    assert_exact(matrix, indices, distances, metric="euclidean", rows=range(60))


@pytest.mark.parametrize("metric", METRICS)
def test_cells_that_are_all_searched_find_everything(metric, tmp_path):
    matrix = clustered(300, 10)
    rows = comparable(matrix, metric=metric)
    asked: list[np.ndarray] = []

    def never_enough(found: np.ndarray) -> float:
        asked.append(found.copy())
        return 0.0

    indices, distances = nearest_by_cells(
        rows, 7, metric=metric, home=tmp_path, recall=never_enough, progress=silent, search=Search(cell_rows=20)
    )
    some = list(range(0, 300, 7))
    assert_exact(matrix, indices[some], distances[some], metric=metric, rows=some)
    assert asked  # it stopped to measure on the way


def test_rows_in_small_cells_far_out_meet_enough_others(tmp_path):
    matrix = clustered(200, 5)
    rows = comparable(matrix, metric="euclidean")
    indices, distances = nearest_by_cells(
        rows,
        15,
        metric="euclidean",
        home=tmp_path,
        recall=lambda _: 0.0,
        progress=silent,
        search=Search(cell_rows=10, rounds=(1,)),
    )
    assert all(len(set(row)) == 15 for row in indices.tolist())
    assert not (indices == torch.arange(200)[:, None]).any()
    assert torch.isfinite(distances).all()


def test_a_large_vocabulary_is_judged_by_exact_rows(tmp_path):
    search = Search(exact_rows=100, judged=40, cell_rows=25, rounds=(1, 1))
    matrix = clustered(500, 16)
    rows = comparable(matrix, metric="cosine")
    found = find_neighbors(rows, 15, metric="cosine", home=tmp_path, progress=silent, search=search)
    assert len(found.truth.rows) == 40
    hits = []
    for row, named in zip(found.truth.rows, found.truth.nearest, strict=True):
        best, _ = brute_force(matrix, int(row), 15, "cosine")
        assert named.tolist() == best
        hits.append(len(set(best) & set(found.indices[row].tolist())) / 15)
    assert found.recall == pytest.approx(np.mean(hits))
    assert 0.3 < found.recall < 1
