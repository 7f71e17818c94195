"""Trust and stability against a naive double loop."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.analyses.vocabulary_map.compute_trust import neighbors_on_map, stability, trust


def naive_neighbors(places: np.ndarray, row: int, k: int) -> set[int]:
    far = {j: sum((places[row] - places[j]) ** 2) for j in range(len(places)) if j != row}
    return set(sorted(far, key=far.__getitem__)[:k])


@pytest.fixture
def places() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32)


@pytest.fixture
def other() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(80, 3)).astype(np.float32)


def test_trust_by_a_double_loop(places, other):
    rows = np.array([3, 40, 79])
    truth = np.array([sorted(naive_neighbors(other, row, 15)) for row in rows])
    naive = [
        len(set(true) & naive_neighbors(places, row, 15)) / 15 for row, true in zip(rows, truth.tolist(), strict=True)
    ]
    assert trust(places, rows, truth).tolist() == pytest.approx(naive)


def test_stability_by_a_double_loop(places, other):
    naive = [len(naive_neighbors(places, row, 6) & naive_neighbors(other, row, 6)) / 6 for row in range(80)]
    assert stability(places, other, 6).tolist() == pytest.approx(naive)
    assert stability(places, places * [3, 3] + [1, 2], 6).tolist() == [1.0] * 80


def test_points_in_one_place_have_other_points_as_neighbors():
    places = np.zeros((50, 2), dtype=np.float32)
    places[40:] = 1
    found = neighbors_on_map(places, np.arange(50), 15)
    assert not (found == np.arange(50)[:, None]).any()
    assert all(len(set(row)) == 15 for row in found.tolist())
    assert (found[:40] < 40).all()
    chance = trust(places, np.arange(40), np.tile(np.arange(40, 50), (40, 1)))
    assert chance.tolist() == [0.0] * 40


def test_everything_in_one_place():
    found = neighbors_on_map(np.ones((5, 3), dtype=np.float32), np.arange(5), 4)
    assert [sorted(row) for row in found.tolist()] == [
        [other for other in range(5) if other != row] for row in range(5)
    ]
