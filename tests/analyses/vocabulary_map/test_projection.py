"""Maps: PCA against numpy, UMAP's parts against umap-learn, and what is kept on the disk."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from inspector.analyses.vocabulary_map import compute_maps as mapping
from inspector.analyses.vocabulary_map.compute import project
from inspector.analyses.vocabulary_map.compute_components import principal_components
from inspector.analyses.vocabulary_map.compute_search import Search
from inspector.analyses.vocabulary_map.request import ProjectRequest
from inspector.analyses.vocabulary_map.result import Projection
from inspector.errors import NotInCheckpointError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from tests.analyses.vocabulary_map.test_neighbors import clustered
from tests.analyses.vocabulary_map.test_preservation import naive_neighbors
from tests.conftest import silent

UMAP = {"method": "umap", "neighbors": 10, "seed": 3}


@pytest.fixture
def no_work(monkeypatch):
    """Fail whatever is computed anew."""

    def fail(*args: object, **options: object) -> None:
        raise AssertionError("computed again")

    def forbid() -> None:
        for name in ("principal_components", "lay_out", "find_neighbors"):
            monkeypatch.setattr(mapping, name, fail)

    return forbid


def places_of(result) -> np.ndarray:
    return result.points[["x", "y", "z"][: result.dimensions]].to_numpy()


def test_pca_is_numpys_svd(open_model):
    checkpoint = open_model("BertModel")
    result = project(checkpoint, progress=silent, dimensions=3)
    matrix = checkpoint.embedding_matrix().double().numpy()
    left, values, _ = np.linalg.svd(matrix - matrix.mean(axis=0), full_matrices=False)
    for axis, column in enumerate("xyz"):
        truth = left[:, axis] * values[axis]
        mine = result.points[column].to_numpy()
        assert min(np.abs(mine - truth).max(), np.abs(mine + truth).max()) < 1e-4
    assert result.explained == pytest.approx(tuple(values[:3] ** 2 / (values**2).sum()), rel=1e-4)
    assert result.rows == 60
    assert result.stability is None


def test_pca_of_many_columns_is_the_same():
    matrix = clustered(50, 1_100)
    places, shares = principal_components(matrix, 2)
    left, values, _ = np.linalg.svd(matrix.double() - matrix.double().mean(0), full_matrices=False)
    assert np.abs(places) == pytest.approx(np.abs(left[:, :2] * values[:2]), abs=1e-2)
    assert shares == pytest.approx(tuple(values[:2] ** 2 / (values**2).sum()), rel=1e-4)


def test_pca_of_many_rows_tells_how_far_it_is():
    sizes = {"numel": 512 * 8, "summed_rows": 700, "every": 0}  # blocks of 512 rows: two, two, and the last one
    matrix = torch.randn(2_100, 8, generator=torch.Generator().manual_seed(0)) * torch.arange(8, 0, -1) + 5
    seen: list[tuple[float | None, str]] = []
    places, shares = principal_components(matrix, 2, progress=lambda part, text: seen.append((part, text)), **sizes)
    left, values, _ = np.linalg.svd(matrix.double() - matrix.double().mean(0), full_matrices=False)
    assert np.abs(places) == pytest.approx(np.abs(left[:, :2] * values[:2]), abs=1e-3)
    assert shares == pytest.approx(tuple(values[:2] ** 2 / (values**2).sum()), rel=1e-4)
    assert [part for part, _ in seen] == pytest.approx([0, *(512 * n / 2_100 for n in range(1, 5)), 1])
    assert {text.split(":")[0] for _, text in seen} == {"Computing the principal components"}


def test_pca_signs_do_not_depend_on_the_order_of_rows():
    matrix = torch.randn(40, 6, generator=torch.Generator().manual_seed(1))
    places, _ = principal_components(matrix, 2)
    flipped, _ = principal_components(matrix.flip(0), 2)
    assert np.allclose(places, flipped[::-1], atol=1e-4)


def test_umap_tells_epochs_and_time(open_model):
    seen: list[tuple[float | None, str]] = []
    result = project(open_model("BertModel"), progress=lambda part, text: seen.append((part, text)), **UMAP)
    assert result.method == "umap"
    assert np.isfinite(places_of(result)).all()
    epochs = [(part, text) for part, text in seen if text.startswith("UMAP: epoch")]
    assert epochs[-1] == (1.0, "UMAP: epoch 250 of 250, about 0 s left")


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_umap_keeps_planted_clusters(open_matrix, dimensions, metric):
    matrix = clustered(240, 32, clusters=6, seed=5)
    result = project(open_matrix(matrix), progress=silent, method="umap", dimensions=dimensions, metric=metric)
    generator = torch.Generator().manual_seed(5)
    torch.randn(6, 32, generator=generator)
    which = torch.randint(6, (240,), generator=generator).numpy()
    places = places_of(result)
    assert places.shape == (240, dimensions)
    same = [np.mean([which[j] == which[row] for j in naive_neighbors(places, row, 10)]) for row in range(240)]
    assert np.mean(same) > 0.95
    assert result.metric == metric


def test_trust_of_every_row_by_a_double_loop(open_matrix):
    matrix = clustered(120, 16)
    result = project(open_matrix(matrix), progress=silent, method="umap", metric="euclidean")
    rows, places = matrix.double().numpy(), places_of(result)
    naive = [len(naive_neighbors(rows, row, 15) & naive_neighbors(places, row, 15)) / 15 for row in range(120)]
    assert result.points["trust"].tolist() == pytest.approx(naive)
    assert result.kept_neighbours == pytest.approx(np.mean(naive))
    assert (result.judged_rows, result.neighbour_recall) == (120, 1.0)


def test_stability_is_what_the_next_seed_keeps(open_matrix):
    checkpoint = open_matrix(clustered(80, 8))
    result = project(checkpoint, progress=silent, stability=True, **UMAP)
    first = places_of(result)
    again = places_of(project(checkpoint, progress=silent, **{**UMAP, "seed": 4}))
    naive = [len(naive_neighbors(first, row, 15) & naive_neighbors(again, row, 15)) / 15 for row in range(80)]
    assert result.points["stability"].tolist() == pytest.approx(naive)
    assert result.stability == pytest.approx(np.mean(naive))
    assert min(naive) < 1


def searched(checkpoint: StagedCheckpoint, search: Search, **options: Any) -> Projection:
    """Project as if the vocabulary were a large one."""
    return inspect.unwrap(project)(checkpoint, ProjectRequest(**options), progress=silent, search=search)


def test_a_large_pca_is_judged_by_a_sample_until_neighbors_are_known(open_matrix):
    search = Search(quick_rows=10, judged=20)
    matrix = clustered(90, 8)
    checkpoint = open_matrix(matrix)
    result = searched(checkpoint, search)
    judged = result.points.dropna(subset="trust")
    assert result.judged_rows == len(judged) == 20
    assert result.kept_neighbours == pytest.approx(judged["trust"].mean())
    searched(checkpoint, search, method="umap")
    whole = searched(checkpoint, search, dimensions=3)
    assert whole.judged_rows == 90


def naive_trust(matrix: torch.Tensor, places: np.ndarray) -> list[float]:
    rows = matrix.double().numpy()
    return [len(naive_neighbors(rows, row, 15) & naive_neighbors(places, row, 15)) / 15 for row in range(len(rows))]


@pytest.mark.parametrize("asked_at", ["once", "later"])
def test_trust_of_every_row_of_a_large_vocabulary(open_matrix, monkeypatch, no_work, asked_at):
    matrix = clustered(150, 16)
    checkpoint = open_matrix(matrix)
    search = Search(quick_rows=10, exact_rows=10, judged=20, cell_rows=20)
    umap = partial(searched, checkpoint, search, method="umap", metric="euclidean")
    if asked_at == "later":
        sampled = umap()
        truth = naive_trust(matrix, places_of(sampled))
        judged = sampled.points["trust"].dropna()
        assert sampled.judged_rows == len(judged) == 20
        assert judged.tolist() == pytest.approx([truth[row] for row in judged.index])
        assert sampled.kept_neighbours == pytest.approx(judged.mean())
    whole = umap(trust=True)
    truth = naive_trust(matrix, places_of(whole))
    assert whole.points["trust"].tolist() == pytest.approx(truth)
    assert (whole.judged_rows, whole.kept_neighbours) == (150, pytest.approx(np.mean(truth)))
    # From now on every map of this metric is judged in full, and nothing is searched for it.
    monkeypatch.setattr(mapping, "whole_truth", None)
    monkeypatch.setattr(mapping, "sample_truth", None)
    other = searched(checkpoint, search, metric="euclidean")
    assert other.points["trust"].tolist() == pytest.approx(naive_trust(matrix, places_of(other)))
    no_work()
    again = umap()
    pd.testing.assert_frame_equal(again.points, whole.points)


def test_a_map_does_not_depend_on_what_is_known_of_its_neighbors(open_matrix):
    search = Search(quick_rows=10, exact_rows=10, cell_rows=20, rounds=(1,))
    matrix = clustered(150, 16)
    before = searched(open_matrix(matrix), search, method="umap")
    checkpoint = open_matrix(matrix)
    searched(checkpoint, search, trust=True)
    after = searched(checkpoint, search, method="umap", trust=True)
    assert np.array_equal(places_of(before), places_of(after))
    assert before.neighbour_recall == after.neighbour_recall < 1


def test_an_approximate_search_is_told(open_matrix):
    search = Search(exact_rows=50, cell_rows=20, rounds=(1,), enough=0.99)
    result = searched(open_matrix(clustered(200, 16)), search, method="umap")
    assert 0 < result.neighbour_recall < 0.99
    percent = f"{100 * result.neighbour_recall:.0f} % of the true ones"
    assert percent in result.warnings[0]


def test_the_same_seed_gives_the_same_map_elsewhere(open_matrix, settings, tmp_path):
    checkpoint = open_matrix(clustered(150, 16))
    first = project(checkpoint, progress=silent, **UMAP)
    checkpoint.settings = dataclasses.replace(settings, home=tmp_path / "another home")
    again = project(checkpoint, progress=silent, **UMAP)
    other = project(checkpoint, progress=silent, **{**UMAP, "seed": 4})
    assert not again.cached
    pd.testing.assert_frame_equal(first.points, again.points)
    assert not np.allclose(places_of(first), places_of(other))


@pytest.mark.parametrize("options", [{}, {"dimensions": 3}, UMAP, {**UMAP, "stability": True}])
def test_a_second_visit_computes_nothing(open_matrix, no_work, options):
    matrix = clustered(60, 8)
    matrix[7, 2] = torch.nan
    checkpoint = open_matrix(matrix)
    first = project(checkpoint, progress=silent, **options)
    no_work()
    again = project(checkpoint, progress=silent, **options)
    assert (first.cached, again.cached) == (False, True)
    pd.testing.assert_frame_equal(first.points, again.points)
    for field in dataclasses.fields(first):
        if field.name not in ("cached", "points"):
            assert getattr(first, field.name) == getattr(again, field.name)


def test_every_parameter_that_counts_has_a_map_of_its_own(open_matrix):
    checkpoint = open_matrix(clustered(60, 8))
    changes = [
        {}, {"seed": 1}, {"metric": "euclidean"}, {"neighbors": 5}, {"dimensions": 3},
        {"method": "pca"},
    ]  # fmt: skip
    options = {"method": "umap"}
    assert [project(checkpoint, progress=silent, **options | change).cached for change in changes
            ] == [False] * len(changes)  # fmt: skip
    # PCA knows no seed.
    assert project(checkpoint, progress=silent, seed=9).cached


def test_another_matrix_has_another_map(open_matrix):
    first = project(open_matrix(clustered(60, 8)), progress=silent)
    second = project(open_matrix(clustered(60, 8, seed=1)), progress=silent)
    assert not second.cached
    assert not np.allclose(places_of(first), places_of(second))


def test_damaged_files_are_computed_again(open_matrix, settings):
    checkpoint = open_matrix(clustered(60, 8))
    first = project(checkpoint, progress=silent, **UMAP)
    files = list((settings.home / "maps").glob("*/*"))
    assert len(files) == 2  # the map, the neighbors
    for path in files:
        path.write_bytes(path.read_bytes()[:-20])
    again = project(checkpoint, progress=silent, **UMAP)
    assert not again.cached
    pd.testing.assert_frame_equal(first.points, again.points)


def test_rows_that_are_equal_zero_or_no_numbers(open_matrix):
    matrix = clustered(120, 8)
    matrix[10:40] = matrix[10]
    matrix[50:70] = 0
    matrix[80] = torch.nan
    matrix[81, 0] = -torch.inf
    for metric in ("cosine", "euclidean"):
        result = project(open_matrix(matrix), progress=silent, method="umap", metric=metric)
        assert result.rows == 118
        assert not set(result.points["token_id"]) & {80, 81}
        assert np.isfinite(places_of(result)).all()
        assert "2 embedding rows contain NaN or infinity" in result.warnings[0]
        assert result.points["trust"].between(0, 1).all()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_matrix_of_equal_rows(open_matrix, value):
    result = project(open_matrix(torch.full((40, 8), value)), progress=silent, method="umap")
    assert np.isfinite(places_of(result)).all()
    assert 0 <= result.kept_neighbours <= 1


@pytest.mark.parametrize(("rows", "neighbors"), [(3, 15), (9, 15), (16, 15), (4, 3)])
def test_few_rows_get_pca_and_the_reason(open_matrix, rows, neighbors):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint = open_matrix(clustered(rows, 8))
        result = project(checkpoint, progress=silent, method="umap", neighbors=neighbors)
    assert result.method == "pca"
    expected = f"UMAP needs more than {neighbors + 1} tokens, but there are {rows}, so this is a PCA."
    assert result.warnings == (expected,)
    assert result.points["token"].tolist()[0] == "id 0"
    assert len(result.points) == rows
    assert project(checkpoint, progress=silent).warnings == ()
    again = project(checkpoint, progress=silent, method="umap", neighbors=neighbors)
    assert (again.cached, again.warnings) == (True, result.warnings)


def test_just_enough_rows(open_matrix):
    result = project(open_matrix(clustered(17, 8)), progress=silent, method="umap")
    assert result.method == "umap"
    assert np.isfinite(places_of(result)).all()


def test_more_neighbors_than_are_judged(open_matrix):
    result = project(
        open_matrix(clustered(90, 8)), progress=silent, method="umap", neighbors=60
    )  # fmt: skip
    assert result.method == "umap"
    assert result.judged_rows == 90


def test_one_row_is_refused(open_matrix):
    with pytest.raises(NotInCheckpointError, match="1 × 8 embeddings are too few for a map in 2"):
        project(open_matrix(torch.ones(1, 8)), progress=silent)


def test_nothing_half_written_is_left_behind(open_matrix, settings):
    project(open_matrix(clustered(60, 8)), progress=silent, **UMAP)
    names = [path.name for path in Path(settings.home / "maps").glob("*/*")]
    assert names
    assert all(name.endswith(".arrays") for name in names)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "tsne"}, "Map must be pca or umap, not 'tsne'."),
        ({"dimensions": 4}, "Dimensions must be between 2 and 3, not 4."),
        ({"neighbors": 1}, "Neighbors must be between 2 and 200, not 1."),
        ({"metric": "dot"}, "Metric must be cosine or euclidean, not 'dot'."),
        ({"seed": -1}, "Seed must be between 0 and 4,294,967,295, not -1."),
    ],
)
def test_refusals(open_model, options, sentence):
    with pytest.raises(RequestError) as error:
        project(open_model("BertModel"), progress=silent, **options)
    assert str(error.value) == sentence


PROGRAM = """
import sys
from pathlib import Path
import torch
from numba import config, threading_layer
from inspector.analyses.vocabulary_map.compute import project
from inspector.models.checkpoint import StagedCheckpoint
from inspector.settings import read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
torch.set_num_threads(config.NUMBA_NUM_THREADS + 1)
settings = read_settings({"INSPECTOR_HOME": sys.argv[2]})
manifest, _ = open_checkpoint(
    CheckpointRef("path", sys.argv[1]), settings=settings, progress=lambda *said: None, restrict_paths=False
)
project(StagedCheckpoint(manifest, settings=settings), progress=lambda *said: None, method="umap")
threading_layer()  # raises where no loop of numba ran
print(torch.get_num_threads() - config.NUMBA_NUM_THREADS)
"""


def test_a_map_leaves_torch_the_threads_that_it_had(open_matrix, tmp_path):
    # In a process of its own: numba's threads begin once in a process, and take torch's number along.
    open_matrix(clustered(60, 16))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "planted"), str(tmp_path / "other")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["1"]


@pytest.mark.parametrize("size", [1e30, 1e18])
@pytest.mark.parametrize("method", ["pca", "umap"])
def test_numbers_that_overflow_are_one_sentence(open_matrix, method, size):
    matrix = torch.randn(200, 16, generator=torch.Generator().manual_seed(0)) * size
    with pytest.raises(NotInCheckpointError, match=r"numbers so large that float32 cannot hold .* SHA-256"):
        project(open_matrix(matrix), progress=silent, method=method)
