"""Maps by umap-learn: the coordinates of umap.UMAP itself, its refusals, and what is kept."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
import torch
from numba.core import config

from inspector.analyses.vocabulary_map import compute_maps as mapping
from inspector.analyses.vocabulary_map import compute_umap_learn as making
from inspector.analyses.vocabulary_map.compute import project
from inspector.analyses.vocabulary_map.frames import side_by_side
from inspector.analyses.vocabulary_map.request import ProjectRequest
from inspector.errors import RequestError
from tests.analyses.vocabulary_map.test_neighbors import clustered
from tests.analyses.vocabulary_map.test_preservation import naive_neighbors
from tests.analyses.vocabulary_map.test_projection import naive_trust, places_of
from tests.conftest import silent

THEIRS: dict[str, Any] = {"method": "umap", "implementation": "umap-learn"}


def direct(matrix: torch.Tensor, **options) -> np.ndarray:
    """What umap-learn answers to those who call it themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import umap

        return np.asarray(umap.UMAP(**options).fit_transform(matrix.numpy()))


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({}, {"metric": "cosine", "random_state": 0}),
        (
            {"metric": "euclidean", "neighbors": 5, "seed": 3, "dimensions": 3},
            {"metric": "euclidean", "n_neighbors": 5, "random_state": 3, "n_components": 3},
        ),
        (
            {"min_dist": 0.5, "spread": 2.0, "densmap": True, "seed": 1},
            {"metric": "cosine", "min_dist": 0.5, "spread": 2.0, "densmap": True,
             "random_state": 1},
        ),
    ],
)  # fmt: skip
def test_coordinates_are_those_of_a_direct_call(open_matrix, options, same):
    matrix = clustered(150, 16)
    threads = numba.get_num_threads()
    result = project(open_matrix(matrix), progress=silent, **THEIRS, **options)
    assert (result.method, result.implementation) == ("umap", "umap-learn")
    np.testing.assert_array_equal(places_of(result), direct(matrix, **same))
    assert numba.get_num_threads() == threads


def test_it_is_judged_as_ours_is_and_stands_beside_it(open_matrix):
    matrix = clustered(120, 16)
    checkpoint = open_matrix(matrix)
    request = ProjectRequest(**THEIRS, metric="euclidean", stability=True)
    theirs = project(checkpoint, progress=silent, **request.parameters())
    naive = naive_trust(matrix, places_of(theirs))
    assert theirs.points["trust"].tolist() == pytest.approx(naive)
    again = direct(matrix, metric="euclidean", random_state=1)
    stays = [
        len(naive_neighbors(places_of(theirs), row, 15) & naive_neighbors(again, row, 15)) / 15 for row in range(120)
    ]
    assert theirs.stability == pytest.approx(np.mean(stays))
    ours = project(checkpoint, progress=silent, **request.ours.parameters())
    assert ours.implementation == "inspector"
    assert not np.array_equal(places_of(ours), places_of(theirs))
    table = side_by_side(ours, theirs)
    assert table["implementation"].tolist() == ["inspector", "umap-learn"]
    assert table["trust"].tolist() == pytest.approx([np.mean(naive_trust(matrix, places_of(ours))), np.mean(naive)])
    assert table["stability"].tolist() == [ours.stability, theirs.stability]
    assert table["judged"].tolist() == [120, 120]
    assert table["found"].tolist() == [1, 1]


def test_a_second_visit_computes_nothing_and_other_options_do(open_matrix, monkeypatch):
    checkpoint = open_matrix(clustered(60, 8))
    changes = [{}, {"seed": 1}, {"metric": "euclidean"}, {"neighbors": 5}, {"dimensions": 3},
               {"min_dist": 0.2}, {"spread": 2.0}, {"densmap": True},
               {"implementation": "inspector"}]  # fmt: skip
    first = [project(checkpoint, progress=silent, **(THEIRS | change)) for change in changes]
    assert [each.cached for each in first] == [False] * len(changes)
    monkeypatch.setattr(mapping, "lay_out_by_umap_learn", None)
    monkeypatch.setattr(mapping, "lay_out", None)
    for change, made in zip(changes, first, strict=True):
        again = project(checkpoint, progress=silent, **(THEIRS | change))
        assert (again.cached, again.implementation) == (True, made.implementation)
        pd.testing.assert_frame_equal(again.points, made.points)


def test_a_map_of_another_release_is_made_again(open_matrix, monkeypatch):
    checkpoint = open_matrix(clustered(60, 8))
    project(checkpoint, progress=silent, **THEIRS)
    monkeypatch.setattr(mapping, "version", lambda _: "0.0.1")
    assert not project(checkpoint, progress=silent, **THEIRS).cached


@pytest.mark.parametrize(("rows", "dimensions", "method"), [(4, 2, "umap"), (4, 3, "pca")])
def test_few_rows(open_matrix, rows, dimensions, method):
    """Three dimensions start from four eigenvectors, which four rows do not give."""
    result = project(open_matrix(clustered(rows, 8)), progress=silent, **THEIRS, neighbors=2,
                     dimensions=dimensions)  # fmt: skip
    assert result.method == method
    if method == "pca":
        assert result.implementation is None
        assert result.warnings == ("UMAP needs more than 4 tokens, but there are 4, so this is a PCA.",)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_rows_that_are_equal_or_zero(open_matrix, value):
    result = project(open_matrix(torch.full((40, 8), value)), progress=silent, **THEIRS)
    assert np.isfinite(places_of(result)).all()


def test_rows_without_a_place_are_refused_and_threads_come_back(open_matrix, monkeypatch):
    import umap

    threads = numba.get_num_threads()

    def fit(self: object, rows: np.ndarray) -> np.ndarray:
        numba.set_num_threads(1)
        return np.where(np.arange(len(rows))[:, None] < 3, np.nan, np.ones((len(rows), 2)))

    monkeypatch.setattr(umap.UMAP, "fit_transform", fit)
    with pytest.raises(RequestError, match=r"umap-learn assigns no position to 3 of 60 rows"):
        project(open_matrix(clustered(60, 8)), progress=silent, **THEIRS)
    assert numba.get_num_threads() == threads


def test_machine_code_is_kept_in_the_store(open_matrix, monkeypatch):
    kept = []
    monkeypatch.setattr(making, "keep_compiled", kept.append)
    checkpoint = open_matrix(clustered(60, 8))
    project(checkpoint, progress=silent, **THEIRS)
    assert kept == [checkpoint.settings.home]


LOOPS = """
def half(x): return x / 2
def twice(x): return x + x
def called(function, x): return function(x)
"""


def loops_of(path: Path) -> Any:
    """A module, imported once more, whose functions are decorated as umap-learn decorates its own."""
    spec: Any = spec_from_file_location("loops", path)
    loops: Any = module_from_spec(spec)
    spec.loader.exec_module(loops)
    njit = partial(making.compile_when_called, numba.njit)
    loops.half = njit("f4(f4)", cache=False)(loops.half)
    loops.twice, loops.called = njit(loops.twice), njit()(loops.called)
    return loops


@pytest.fixture
def loops(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "kept"))
    (tmp_path / "loops.py").write_text(LOOPS)
    return lambda: loops_of(tmp_path / "loops.py")


@pytest.mark.parametrize("called", [lambda loops: loops.half(3), lambda loops: loops.called(loops.half, 3.0)])
def test_declared_types_are_compiled_when_called_and_no_others(loops, called):
    made = loops()
    assert made.half.signatures == []
    plain = numba.njit("f4(f4)")(made.half.py_func)
    assert called(made) == plain(3) == 1.5
    assert made.half.signatures == plain.signatures
    assert made.half.nopython_signatures == plain.nopython_signatures
    assert made.half.get_function_type() == plain.get_function_type()
    with pytest.raises(TypeError, match="No matching definition"):
        made.half("3")


def test_code_that_calls_a_function_it_is_given_is_found_again(loops):
    first, again = loops(), loops()
    assert first.called(first.twice, 2.0) == again.called(again.twice, 2.0) == 4
    assert first.called(first.half, 2.0) == again.called(again.half, 2.0) == 1
    for made, hits, misses in ((first, 0, 2), (again, 2, 0)):
        stats = made.called.stats
        assert (sum(stats.cache_hits.values()), sum(stats.cache_misses.values())) == (hits, misses)
    assert again.twice.signatures == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"implementation": "umap-learn"}, "umap-learn computes only UMAPs: choose umap as the map."),
        (
            {"method": "umap", "min_dist": 0.5},
            "Minimum distance, spread and densMAP are options of umap-learn: choose it as the implementation.",
        ),
        ({**THEIRS, "min_dist": 2.0}, "Minimum distance must be at most the spread, 1, not 2."),
        ({**THEIRS, "min_dist": -1.0}, "Minimum distance must be between 0 and 10, not -1."),
        ({**THEIRS, "spread": 0.01}, "Spread must be between 0.1 and 10, not 0.01."),
        ({"method": "umap", "implementation": "cuml"}, "Implementation must be inspector or umap-learn, not 'cuml'."),
    ],
)
def test_refusals(options, sentence):
    with pytest.raises(RequestError) as error:
        ProjectRequest(**options)
    assert str(error.value) == sentence


def test_what_is_shown_meanwhile():
    asked = ProjectRequest(**THEIRS, neighbors=5, min_dist=0.3, stability=True)
    assert asked.steps() == (
        ProjectRequest(),
        ProjectRequest(method="umap", neighbors=5, stability=True),
        dataclasses.replace(asked, stability=False),
        asked,
    )
    assert ProjectRequest().steps() == (ProjectRequest(),)
