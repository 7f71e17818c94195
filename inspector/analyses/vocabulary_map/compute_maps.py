"""Make the maps of one embedding matrix, or find them on the disk."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from inspector.analyses.vocabulary_map.compute_cache import MapCache
from inspector.analyses.vocabulary_map.compute_components import principal_components
from inspector.analyses.vocabulary_map.compute_layout import fuzzy_graph, lay_out
from inspector.analyses.vocabulary_map.compute_neighbors import comparable
from inspector.analyses.vocabulary_map.compute_trust import JUDGED_NEIGHBOURS
from inspector.analyses.vocabulary_map.compute_trust import stability as stable_share
from inspector.analyses.vocabulary_map.compute_trust import trust as trusted_share
from inspector.analyses.vocabulary_map.compute_truth import (
    Neighbours,
    Truth,
    find_neighbours,
    sample_truth,
    whole_truth,
)
from inspector.analyses.vocabulary_map.request import SEEDS, ProjectRequest
from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import Checkpoint
from inspector.models.device import pick_device
from inspector.models.vocabulary.rows import RowFacts, read_facts
from inspector.progress import Progress

AXES = ("x", "y", "z")
COUNTS = {  # what a map depends on; of a PCA only the judgment depends on the metric
    "pca": ("method", "dimensions", "metric"),
    "umap": ("method", "dimensions", "neighbors", "metric", "seed"),
}
QUICK_ROWS = 6_000  # of a PCA whose rows are all judged: that takes no time


@dataclass(frozen=True, slots=True)
class Map:
    """Places of the finite rows, and how far to trust them."""

    method: str
    finite: np.ndarray  # (rows of the matrix,) of bool
    places: np.ndarray  # (finite rows, dimensions) of float32
    norms: np.ndarray  # (finite rows,) of float32
    trust: np.ndarray  # (finite rows,), 0..1; NaN where a row was not judged
    explained: tuple[float, ...]
    recall: float
    seconds: float  # that it took to make
    warnings: tuple[str, ...] = ()
    cached: bool = False

    @property
    def wholly_judged(self) -> bool:
        """Whether the trust of every row is known."""
        return bool(np.isfinite(self.trust).all())

    @property
    def kept_neighbours(self) -> float:
        """Mean trust of the judged rows."""
        judged = self.trust[np.isfinite(self.trust)]
        return float(judged.mean(dtype=np.float64)) if len(judged) else 1.0

    def arrays(self) -> dict[str, np.ndarray]:
        """For the disk."""
        told = {
            "method": self.method,
            "explained": self.explained,
            "recall": self.recall,
            "seconds": self.seconds,
            "warnings": self.warnings,
        }
        names = ("finite", "places", "norms", "trust")
        return {**{name: getattr(self, name) for name in names}, "told": np.array(json.dumps(told))}


def map_from_arrays(arrays: dict[str, np.ndarray]) -> Map:
    """A map from the disk."""
    told = json.loads(str(arrays.pop("told")))
    told |= {"explained": tuple(told["explained"]), "warnings": tuple(told["warnings"])}
    return Map(**arrays, **told, cached=True)


def _key(request: ProjectRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in COUNTS[request.method]}


class Mapper:
    """Makes maps of a checkpoint's embedding matrix."""

    def __init__(self, checkpoint: Checkpoint, *, progress: Progress) -> None:
        self._checkpoint = checkpoint
        self._progress = progress
        self._home = checkpoint.settings.home
        chosen = pick_device(checkpoint.settings.device)
        self._device = "cuda" if chosen.type == "cuda" else "cpu"
        self._cache = MapCache(checkpoint, device=self._device)

    def make(self, request: ProjectRequest) -> Map:
        """Find a map on the disk, or make it and keep it there.

        Args:
            request: Which map, and whether to judge every row.

        Raises:
            NotInCheckpointError: If the matrix is too small.
        """
        key = _key(request)
        arrays = self._cache.map(key)
        if arrays is not None:
            return self._judge_again(request, map_from_arrays(arrays))
        started = time.perf_counter()
        self._progress(None, "Reading the embedding matrix")
        request, warnings = self._possible(request)
        self._progress(None, "Computing the principal components")
        places, explained = principal_components(self._matrix, request.dimensions)
        recall = 1.0
        if request.method == "umap":
            places, recall = self._lay_out(request, places)
            explained = ()
        trust = self._judge(places, self._truth(request, whole=request.trust))
        finite = self._facts.finite.numpy()
        seconds = time.perf_counter() - started
        made = Map(
            request.method, finite, places, self._norms, trust, explained, recall, seconds, warnings
        )
        self._cache.keep_map(key, made.arrays())
        return made

    def stability(self, request: ProjectRequest) -> np.ndarray:
        """Share of each point's neighbors on the map that the next seed's map has too, 0..1."""
        key = {**_key(request), "stability": True}
        arrays = self._cache.map(key)
        if arrays is None:
            request = replace(request, trust=False)
            first = self.make(request).places
            self._progress(None, "Laying the rows out again with another seed")
            again = self.make(replace(request, seed=(request.seed + 1) % SEEDS)).places
            share = stable_share(first, again, min(JUDGED_NEIGHBOURS, len(first) - 1))
            arrays = {"stability": share}
            self._cache.keep_map(key, arrays)
        return arrays["stability"]

    @cached_property
    def _facts(self) -> RowFacts:
        return read_facts(self._checkpoint.embedding_matrix())

    @cached_property
    def _matrix(self) -> torch.Tensor:
        matrix = self._checkpoint.embedding_matrix()
        finite = self._facts.finite
        return matrix if finite.all() else matrix[finite]

    @cached_property
    def _norms(self) -> np.ndarray:
        return self._facts.norms[self._facts.finite].numpy()

    def _possible(self, request: ProjectRequest) -> tuple[ProjectRequest, tuple[str, ...]]:
        rows, columns = self._matrix.shape
        if rows < 2 or min(rows, columns) < request.dimensions:
            raise NotInCheckpointError(
                f"{rows} × {columns} embeddings are too few for a map in "
                f"{request.dimensions} dimensions."
            )
        if request.method == "pca" or rows > request.neighbors + 1:
            return request, ()
        return replace(request, method="pca"), (
            f"UMAP needs more than {request.neighbors + 1} tokens and there are {rows}: "
            "this is a PCA.",
        )

    def _lay_out(self, request: ProjectRequest, start: np.ndarray) -> tuple[np.ndarray, float]:
        found = self._neighbours(request)
        self._progress(None, "Weighing the neighbors")
        k = request.neighbors - 1  # UMAP counts a row as its own first neighbor
        graph = fuzzy_graph(found.indices[:, :k], found.distances[:, :k])
        places = lay_out(
            graph, start, seed=request.seed, home=self._home, progress=self._progress,
            device=self._device,
        )  # fmt: skip
        return places, found.recall

    def _neighbours(self, request: ProjectRequest) -> Neighbours:
        k = self._k(request)
        found = self._cache.neighbours(k=k, metric=request.metric)
        if found is None:
            self._progress(None, "Finding neighbors")
            found = find_neighbours(
                self._comparable(request),
                k,
                metric=request.metric,
                home=self._home,
                progress=self._progress,
            )
            self._cache.keep_neighbours(found, k=k, metric=request.metric)
        return found

    def _k(self, request: ProjectRequest) -> int:
        wanted = request.neighbors - 1 if request.method == "umap" else 0
        return min(max(wanted, JUDGED_NEIGHBOURS), len(self._matrix) - 1)

    def _comparable(self, request: ProjectRequest) -> torch.Tensor:
        return comparable(self._matrix, metric=request.metric).to(self._device)

    def _judge(self, places: np.ndarray, truth: Truth) -> np.ndarray:
        self._progress(None, "Checking how many neighbors the map keeps")
        trust = np.full(len(places), np.nan, dtype=np.float32)
        trust[truth.rows] = trusted_share(places, truth.rows, truth.nearest)
        return trust

    def _judge_again(self, request: ProjectRequest, found: Map) -> Map:
        """Judge every row of a map from the disk, once their true neighbors are known."""
        if found.wholly_judged:
            return found
        truth = self._cache.truth(metric=request.metric)
        if truth is None and request.trust:
            truth = self._truth(request, whole=True)
        if truth is None:
            return found
        found = replace(found, trust=self._judge(found.places, truth))
        self._cache.keep_map(_key(request), found.arrays())
        return found

    def _truth(self, request: ProjectRequest, *, whole: bool) -> Truth:
        """What to judge by: all rows if wanted, found before, or quickly found; else a sample."""
        truth = self._cache.truth(metric=request.metric)
        if truth is not None:
            return truth
        rows = len(self._matrix)
        found = self._cache.neighbours(k=self._k(request), metric=request.metric)
        if found is None and rows <= QUICK_ROWS:
            found = self._neighbours(request)
        if found is not None and (len(found.truth.rows) == rows or not whole):
            return found.truth
        if not whole:
            return sample_truth(
                self._comparable(request), self._k(request), metric=request.metric,
                progress=self._progress,
            )  # fmt: skip
        self._progress(None, "Finding the true neighbors of every row")
        truth = whole_truth(
            self._comparable(request), metric=request.metric, home=self._home,
            progress=self._progress,
        )  # fmt: skip
        self._cache.keep_truth(truth, metric=request.metric)
        return truth
