"""Project the whole vocabulary into two or three dimensions, and judge the map."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from inspector.analyses.vocabulary_map.compute_cells import ENOUGH
from inspector.analyses.vocabulary_map.compute_maps import AXES, Mapper, MapRequest
from inspector.analyses.vocabulary_map.result import Projection
from inspector.errors import RequestError
from inspector.models.checkpoint import Checkpoint
from inspector.models.vocabulary.labels import label_rows, not_finite_warning
from inspector.progress import Progress

SEEDS = 2**32


def project(
    checkpoint: Checkpoint,
    *,
    progress: Progress,
    method: str = "pca",
    dimensions: int = 2,
    neighbours: int = 15,
    metric: str = "cosine",
    seed: int = 0,
    stability: bool = False,
    trust: bool = False,
) -> Projection:
    """Map every row of the input embedding matrix; none is sampled away.

    Maps and neighbours are kept on disk by the content of the matrix and every parameter.

    Args:
        checkpoint: What to read.
        progress: Told the share done and what is being done.
        method: "pca" (of the centred rows), or "umap" (McInnes et al. 2018, in our own loops; see
            `layout`).
        dimensions: 2 or 3.
        neighbours: UMAP's n_neighbors, 2..200.
        metric: Of the neighbours, "cosine" or "euclidean".
        seed: Of UMAP's random choices; the same seed gives the same map on the same machine.
        stability: Lay the rows out a second time with the next seed, and tell which neighbours on
            the map stay. PCA makes no random choices: it has no stability.
        trust: Judge every row. The true neighbours of a large vocabulary are found by comparing
            all rows with all; kept on disk, they serve every later map with the same metric.

    Returns:
        A point for every finite row. Of a large vocabulary (a PCA's 6,000 rows, a UMAP's 10,000)
        1,000 random rows are judged, unless the true neighbours of all are wanted or known.

    Raises:
        NotInCheckpointError: If there is no embedding matrix, or a too small one.
        RequestError: If a parameter is out of range.
    """
    _check(method, dimensions, neighbours, metric, seed)
    mapper = Mapper(checkpoint, progress=progress)
    request = MapRequest(method, dimensions, neighbours, metric, seed)
    found = mapper.make(request, judge_all=trust)
    again = mapper.stability(request) if stability and found.method == "umap" else None
    points = label_rows(checkpoint, len(found.finite))
    warnings = (
        *not_finite_warning(points, torch.from_numpy(found.finite)),
        *found.warnings,
        *_approximate_warning(found.recall),
    )
    points = points.loc[found.finite].reset_index(drop=True)
    columns = dict(zip(AXES, found.places.T, strict=False))
    columns |= {"norm": found.norms, "trust": found.trust}
    if again is not None:
        columns["stability"] = again
    for name, values in columns.items():
        points[name] = values.astype(np.float32)
    points["token_id"] = points["token_id"].astype(np.int32)
    return Projection(
        method=found.method,
        dimensions=dimensions,
        rows=len(points),
        seconds=found.seconds,
        kept_neighbours=found.kept_neighbours,
        file=None,
        warnings=warnings,
        points=_in_order(points, dimensions),
        explained=found.explained,
        metric=metric,
        judged_rows=int(np.isfinite(found.trust).sum()),
        neighbour_recall=found.recall,
        stability=None if again is None else float(again.mean(dtype=np.float64)),
        cached=found.cached,
    )


def _approximate_warning(recall: float) -> tuple[str, ...]:
    if recall >= ENOUGH:  # a map made of all neighbours would be no better
        return ()
    return (
        "The vocabulary is large, so the map's neighbours were searched approximately: only "
        f"{100 * recall:.0f} % of the true ones were found.",
    )


def _in_order(points: pd.DataFrame, dimensions: int) -> pd.DataFrame:
    order = ["token_id", "token", *AXES[:dimensions], "norm", "kind", "trust", "stability"]
    return points.reindex(columns=[name for name in order if name in points])


def _check(method: str, dimensions: int, neighbours: int, metric: str, seed: int) -> None:
    if method not in ("pca", "umap"):
        raise RequestError(f"There is no method {method!r}: use pca or umap.")
    if dimensions not in (2, 3):
        raise RequestError(f"A map has 2 or 3 dimensions, not {dimensions}.")
    if metric not in ("cosine", "euclidean"):
        raise RequestError(f"There is no metric {metric!r} for a map: use cosine or euclidean.")
    if not 2 <= neighbours <= 200:
        raise RequestError(f"neighbours is {neighbours}: use 2 to 200.")
    if not 0 <= seed < SEEDS:
        raise RequestError(f"seed is {seed}: use a number from 0 to {SEEDS - 1}.")
