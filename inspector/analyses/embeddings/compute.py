"""Describe the static input embeddings: norms, neighbours, padding, under-trained tokens."""

from __future__ import annotations

from inspector.analyses.embeddings.compute_health import examine
from inspector.analyses.embeddings.result import Embeddings, Norms
from inspector.errors import RequestError
from inspector.models.checkpoint import Checkpoint
from inspector.models.vocabulary.labels import (
    find_row,
    label_rows,
    nearest_rows,
    not_finite_warning,
)
from inspector.models.vocabulary.rows import read_facts
from inspector.progress import Progress

METRICS = ("cosine", "dot", "euclidean")


def embeddings(
    checkpoint: Checkpoint,
    *,
    progress: Progress,
    token: str | None = None,
    k: int = 10,
    metric: str = "cosine",
) -> Embeddings:
    """Describe the input embedding matrix, (vocab, d_model), as it stands in the file.

    Args:
        checkpoint: What to read.
        progress: Told what is being done.
        token: Whose neighbours to list, as text or "id 37"; None: nobody's.
        k: Neighbours, 1..1000.
        metric: "cosine" and "dot" list the largest first, "euclidean" the smallest.

    Raises:
        NotInCheckpointError: If there is no embedding matrix.
        RequestError: If the token is not in the vocabulary, or k or metric is out of range.
    """
    if metric not in METRICS:
        raise RequestError(f"There is no metric {metric!r}: use cosine, dot or euclidean.")
    if not 1 <= k <= 1000:
        raise RequestError(f"k is {k}: ask for 1 to 1,000 neighbours.")
    progress(None, "Reading the embedding matrix")
    matrix = checkpoint.embedding_matrix()
    facts = read_facts(matrix)
    vocabulary = label_rows(checkpoint, len(matrix))
    vocabulary["norm"] = facts.norms.numpy()
    query = None if token in (None, "") else find_row(checkpoint, str(token), len(matrix))
    kept = facts.norms[facts.finite]
    if not len(kept):
        raise RequestError(
            f"Every embedding row of {checkpoint.name} holds NaN or infinity: nothing can be "
            "compared; look for an earlier checkpoint of the run."
        )
    special = vocabulary.loc[vocabulary["kind"].isin(["padding", "special"])]
    padding = vocabulary.loc[vocabulary["kind"] == "padding"]
    pad = padding.iloc[0] if len(padding) else None
    progress(None, "Looking for rows that were never trained")
    health, undertrained = examine(checkpoint, matrix, facts, vocabulary)
    return Embeddings(
        rows=matrix.shape[0],
        columns=matrix.shape[1],
        norms=Norms(*(float(value) for value in (kept.min(), kept.median(), kept.max()))),
        special=special.reindex(columns=["token", "token_id", "norm"]).reset_index(drop=True),
        undertrained=undertrained,
        neighbours=nearest_rows(matrix, vocabulary, query, k=k, metric=metric, facts=facts),
        warnings=not_finite_warning(vocabulary, facts.finite),
        health=health,
        query=None if query is None else vocabulary["token"].iloc[query],
        query_id=query,
        metric=metric,
        tensor=checkpoint.embedding.name,
        pad_token=None if pad is None else pad["token"],
        pad_id=None if pad is None else int(pad["token_id"]),
        pad_norm=None if pad is None else float(pad["norm"]),
        pad_percentile=None
        if pad is None
        else 100 * float((kept < facts.norms[int(pad["token_id"])]).float().mean()),
    )
