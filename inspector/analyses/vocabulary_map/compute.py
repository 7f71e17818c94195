"""Project the whole vocabulary into two or three dimensions, and judge the map."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from inspector.analyses.vocabulary_map import words
from inspector.analyses.vocabulary_map.compute_maps import AXES, Mapper
from inspector.analyses.vocabulary_map.compute_search import USUAL, Search
from inspector.analyses.vocabulary_map.request import ProjectRequest
from inspector.analyses.vocabulary_map.result import Projection
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.placing.threads import threads_kept
from inspector.models.vocabulary.labels import label_rows, not_finite_warning
from inspector.progress import Progress
from inspector.request import answers


@answers(ProjectRequest)
@threads_kept()
def project(
    checkpoint: StagedCheckpoint, request: ProjectRequest, *, progress: Progress, search: Search = USUAL
) -> Projection:
    """Map every row of the input embedding matrix; none is sampled away.

    Maps and neighbors are kept on disk by the content of the matrix and every parameter.

    Args:
        request: Which map: a PCA of the centered rows, or a UMAP (McInnes et al. 2018), in our own
            loops (see `compute_umap/layout.py`) or by umap-learn. The same seed gives the same map on the
            same machine. PCA makes no random choices: it has no stability. To judge every row, all
            rows are compared with all; kept on disk, the true neighbors serve every later map with
            that metric.
        search: How far neighbors are searched for.

    Returns:
        A point for every finite row. Of a large vocabulary (a PCA's 6,000 rows, a UMAP's 10,000)
        1,000 random rows are judged, unless the true neighbors of all are wanted or known.

    Raises:
        NotInCheckpointError: If there is no embedding matrix, or a too small one.
    """
    mapper = Mapper(checkpoint, progress=progress, search=search)
    found = mapper.make(request)
    wanted = request.stability and found.method == "umap"
    again = mapper.stability(request) if wanted else None
    points = label_rows(checkpoint, len(found.finite))
    # With enough of the true neighbors, a map made of all would be no better.
    approximate = () if found.recall >= search.enough else (words.approximate(found.recall),)
    warnings = (*not_finite_warning(points, torch.from_numpy(found.finite)), *found.warnings, *approximate)
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
        dimensions=request.dimensions,
        rows=len(points),
        seconds=found.seconds,
        kept_neighbours=found.kept_neighbours,
        file=None,
        warnings=warnings,
        points=_in_order(points, request.dimensions),
        explained=found.explained,
        metric=request.metric,
        judged_rows=int(np.isfinite(found.trust).sum()),
        neighbour_recall=found.recall,
        stability=None if again is None else float(again.mean(dtype=np.float64)),
        cached=found.cached,
        implementation=request.implementation if found.method == "umap" else None,
    )


def _in_order(points: pd.DataFrame, dimensions: int) -> pd.DataFrame:
    order = ["token_id", "token", *AXES[:dimensions], "norm", "kind", "trust", "stability"]
    return points.reindex(columns=[name for name in order if name in points])
