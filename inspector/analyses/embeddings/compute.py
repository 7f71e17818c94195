"""Describe the static input embeddings: norms, neighbors, padding, under-trained tokens."""

from __future__ import annotations

from inspector.analyses.embeddings.compute_health import examine
from inspector.analyses.embeddings.request import EmbeddingsRequest
from inspector.analyses.embeddings.result import Embeddings, RowNorms
from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.vocabulary.labels import find_row, measured_rows, nearest_rows, not_finite_warning
from inspector.progress import Progress
from inspector.request import answers


@answers(EmbeddingsRequest)
def embeddings(checkpoint: StagedCheckpoint, request: EmbeddingsRequest, *, progress: Progress) -> Embeddings:
    """Describe the input embedding matrix, (vocab, d_model), as it stands in the file.

    Args:
        request: Whose neighbors to list; "cosine" and "dot" list the largest first, "euclidean"
            the smallest.

    Raises:
        NotInCheckpointError: If there is no embedding matrix.
        RequestError: If the token is not in the vocabulary.
    """
    matrix, facts, vocabulary = measured_rows(checkpoint, progress)
    query = find_row(checkpoint, request.token, len(matrix), option="token") if request.token else None
    kept = facts.norms[facts.finite]
    if not len(kept):
        raise RequestError(
            f"Every embedding row of {checkpoint.name} holds NaN or infinity, so no rows can be compared: use an "
            "earlier checkpoint of the run."
        )
    special = vocabulary.loc[vocabulary["kind"].isin(["padding", "special"])]
    padding = vocabulary.loc[vocabulary["kind"] == "padding"]
    pad = padding.iloc[0] if len(padding) else None
    progress(None, "Looking for untrained rows")
    health, undertrained = examine(checkpoint, matrix, facts, vocabulary)
    return Embeddings(
        rows=matrix.shape[0],
        columns=matrix.shape[1],
        norms=RowNorms(*(float(value) for value in (kept.min(), kept.median(), kept.max()))),
        special=special.reindex(columns=["token", "token_id", "norm"]).reset_index(drop=True),
        undertrained=undertrained,
        neighbours=nearest_rows(matrix, vocabulary, query, k=request.k, metric=request.metric, facts=facts),
        warnings=not_finite_warning(vocabulary, facts.finite),
        health=health,
        query=None if query is None else vocabulary["token"].iloc[query],
        query_id=query,
        metric=request.metric,
        tensor=checkpoint.embedding.name,
        pad_token=None if pad is None else pad["token"],
        pad_id=None if pad is None else int(pad["token_id"]),
        pad_norm=None if pad is None else float(pad["norm"]),
        pad_percentile=None if pad is None else 100 * float((kept < facts.norms[int(pad["token_id"])]).float().mean()),
    )
