"""Maps and neighbors on disk, by the content of the matrix and every parameter."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from inspector.analyses.vocabulary_map.compute_truth import Neighbors, Truth
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.keeping.arrays import ArrayCache
from inspector.store.keeping.quota import trim
from inspector.store.manifests.entries import results_folder

VERSION = 2  # raise it when the same parameters give another map


class MapCache:
    """What was computed about one embedding matrix, in this process or an earlier one."""

    def __init__(self, checkpoint: StagedCheckpoint, *, device: str) -> None:
        tensor = checkpoint.embedding
        digests = {file.name: file.digest for file in checkpoint.manifest.files}
        settings = checkpoint.settings
        # Only workers of this checkpoint write there: what they read may have taken them over.
        self._arrays = ArrayCache(
            results_folder(checkpoint.manifest.fingerprint, settings=settings), after_put=partial(trim, settings)
        )
        self._content = {"version": VERSION, "file": digests[tensor.file], "tensor": tensor.name, "device": device}

    def neighbors(self, *, k: int, metric: str) -> Neighbors | None:
        """The neighbors that were found earlier."""
        arrays = self._arrays.get(self._key("neighbours", k=k, metric=metric))
        if arrays is None:
            return None
        return Neighbors(
            indices=arrays["indices"],
            distances=arrays["distances"],
            recall=float(arrays["recall"]),
            truth=Truth(arrays["judged"], arrays["truth"]),
        )

    def keep_neighbors(self, found: Neighbors, *, k: int, metric: str) -> None:
        """Keep neighbors for the next map of the same matrix."""
        self._arrays.put(
            self._key("neighbours", k=k, metric=metric),
            {
                "indices": found.indices,
                "distances": found.distances,
                "recall": np.array(found.recall),
                "judged": found.truth.rows,
                "truth": found.truth.nearest,
            },
        )

    def truth(self, *, metric: str) -> Truth | None:
        """The exact neighbors of every row, if they were found earlier."""
        arrays = self._arrays.get(self._key("truth", metric=metric))
        return None if arrays is None else Truth(arrays["judged"], arrays["truth"])

    def keep_truth(self, found: Truth, *, metric: str) -> None:
        """Keep the exact neighbors of every row: every later map is judged by them."""
        arrays = {"judged": found.rows, "truth": found.nearest}
        self._arrays.put(self._key("truth", metric=metric), arrays)

    def map(self, parameters: dict[str, Any]) -> dict[str, np.ndarray] | None:
        """The arrays of a map that was made earlier."""
        return self._arrays.get(self._key("map", **parameters))

    def keep_map(self, parameters: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Keep the arrays of a map."""
        self._arrays.put(self._key("map", **parameters), arrays)

    def _key(self, what: str, **parameters: Any) -> dict[str, Any]:
        return {"what": what, **self._content, **parameters}
