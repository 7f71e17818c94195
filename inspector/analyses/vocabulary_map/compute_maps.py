"""Make the maps of one embedding matrix, or find them on the disk."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from inspector.analyses.vocabulary_map import words
from inspector.analyses.vocabulary_map.compute_cache import MapCache
from inspector.analyses.vocabulary_map.compute_components import principal_components
from inspector.analyses.vocabulary_map.compute_kept import Map, map_from_arrays
from inspector.analyses.vocabulary_map.compute_neighbors import comparable
from inspector.analyses.vocabulary_map.compute_search import USUAL, Search
from inspector.analyses.vocabulary_map.compute_trust import JUDGED_NEIGHBORS, shared
from inspector.analyses.vocabulary_map.compute_trust import stability as stable_share
from inspector.analyses.vocabulary_map.compute_trust import trust as trusted_share
from inspector.analyses.vocabulary_map.compute_truth import Neighbors, Truth, find_neighbors, sample_truth, whole_truth
from inspector.analyses.vocabulary_map.compute_umap.layout import fuzzy_graph, lay_out
from inspector.analyses.vocabulary_map.compute_umap_learn import lay_out_by_umap_learn
from inspector.analyses.vocabulary_map.request import SEEDS, UMAP_LEARN, ProjectRequest
from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.placing.device import pick_device
from inspector.models.vocabulary.rows import RowFacts, read_facts
from inspector.progress import Progress

AXES = ("x", "y", "z")
COUNTS = {  # what a map depends on; of a PCA only the judgment depends on the metric
    "pca": ("method", "dimensions", "metric"),
    "umap": ("method", "dimensions", "neighbors", "metric", "seed"),
}
COUNTS_THERE = (*COUNTS["umap"], "implementation", "min_dist", "spread", "densmap")


def _key(request: ProjectRequest) -> dict[str, Any]:
    if request.implementation == UMAP_LEARN:
        counts, release = COUNTS_THERE, {"release": version(UMAP_LEARN)}
    else:
        counts, release = COUNTS[request.method], {}
    return {name: getattr(request, name) for name in counts} | release


class Mapper:
    """Makes maps of a checkpoint's embedding matrix.

    Args:
        search: How far neighbors are searched for.
        epochs: Of a UMAP's layout; None: as many as are enough.
    """

    def __init__(
        self, checkpoint: StagedCheckpoint, *, progress: Progress, search: Search = USUAL, epochs: int | None = None
    ) -> None:
        self._checkpoint = checkpoint
        self._progress = progress
        self._search = search
        self._epochs = epochs
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
        places, explained, recall = self._place(request)
        trust = self._judge(places, self._truth(request, whole=request.trust))
        finite = self._facts.finite.numpy()
        seconds = time.perf_counter() - started
        made = Map(request.method, finite, places, self._norms, trust, explained, recall, seconds, warnings)
        self._cache.keep_map(key, made.arrays())
        return made

    def stability(self, request: ProjectRequest) -> np.ndarray:
        """Share of each point's neighbors on the map that the next seed's map has too, 0..1."""
        key = {**_key(request), "stability": True}
        arrays = self._cache.map(key)
        if arrays is None:
            request = replace(request, trust=False)
            first = self.make(request).places
            self._progress(None, "Computing the layout again with another seed")
            again = self.make(replace(request, seed=(request.seed + 1) % SEEDS)).places
            share = stable_share(first, again, min(JUDGED_NEIGHBORS, len(first) - 1))
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
                f"{rows} × {columns} embeddings are too few for a map in {request.dimensions} dimensions."
            )
        if float(self._norms.max()) ** 2 * rows > float(np.finfo(np.float32).max):
            raise NotInCheckpointError(
                "The embeddings have numbers so large that float32 cannot hold the sums that a map needs: the weights "
                "may be damaged. Compare the file's SHA-256 with its source's."
            )
        least = request.neighbors + 1
        if request.implementation == UMAP_LEARN:  # it starts from as many eigenvectors, and one
            least = max(least, request.dimensions + 1)
        if request.method == "pca" or rows > least:
            return request, ()
        pca = ProjectRequest(dimensions=request.dimensions, metric=request.metric, trust=request.trust)
        return pca, (words.too_few(least, rows),)

    def _place(self, request: ProjectRequest) -> tuple[np.ndarray, tuple[float, ...], float]:
        """Places, what the axes explain, and the share of true neighbors that was known."""
        if request.implementation == UMAP_LEARN:
            places, recall = self._lay_out_there(request)
            return places, (), recall
        places, explained = principal_components(self._matrix, request.dimensions, progress=self._progress)
        if request.method == "pca":
            return places, explained, 1.0
        places, recall = self._lay_out(request, places)
        return places, (), recall

    def _lay_out_there(self, request: ProjectRequest) -> tuple[np.ndarray, float]:
        places, found = lay_out_by_umap_learn(self._matrix, request, home=self._home, progress=self._progress)
        if found is None:
            return places, 1.0
        truth = self._truth(request, whole=request.trust)
        nearest = truth.nearest[:, : request.neighbors - 1]  # it counts a row as its own first
        return places, float(shared(nearest, found[truth.rows]).mean())

    def _lay_out(self, request: ProjectRequest, start: np.ndarray) -> tuple[np.ndarray, float]:
        found = self._neighbors(request)
        self._progress(None, "Weighting neighbors")
        k = request.neighbors - 1  # UMAP counts a row as its own first neighbor
        graph = fuzzy_graph(found.indices[:, :k], found.distances[:, :k])
        places = lay_out(graph, start, seed=request.seed, home=self._home, progress=self._progress, epochs=self._epochs)
        return places, found.recall

    def _neighbors(self, request: ProjectRequest) -> Neighbors:
        k = self._k(request)
        found = self._cache.neighbors(k=k, metric=request.metric)
        if found is None:
            self._progress(None, "Finding neighbors")
            found = find_neighbors(
                self._comparable(request),
                k,
                metric=request.metric,
                home=self._home,
                progress=self._progress,
                search=self._search,
            )
            self._cache.keep_neighbors(found, k=k, metric=request.metric)
        return found

    def _k(self, request: ProjectRequest) -> int:
        wanted = request.neighbors - 1 if request.method == "umap" else 0
        return min(max(wanted, JUDGED_NEIGHBORS), len(self._matrix) - 1)

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
        found = self._cache.neighbors(k=self._k(request), metric=request.metric)
        if found is None and rows <= self._search.quick_rows:
            found = self._neighbors(request)
        if found is not None and (len(found.truth.rows) == rows or not whole):
            return found.truth
        if not whole:
            return sample_truth(
                self._comparable(request),
                self._k(request),
                metric=request.metric,
                progress=self._progress,
                search=self._search,
            )
        self._progress(None, "Finding the true neighbors of every row")
        truth = whole_truth(self._comparable(request), metric=request.metric, home=self._home, progress=self._progress)
        self._cache.keep_truth(truth, metric=request.metric)
        return truth
