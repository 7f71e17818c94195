"""Describe the static input embeddings: norms, neighbours, padding, under-trained tokens."""

from __future__ import annotations

import pandas as pd
import torch

from inspector.analyses import Progress
from inspector.errors import RequestError
from inspector.models.checkpoint import Checkpoint
from inspector.results import Embeddings, Norms

METRICS = ("cosine", "dot", "euclidean")
UNDERTRAINED = 20  # tokens listed
MIN_REFERENCES = 3  # unused rows from which a reference direction can be taken


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
    matrix = checkpoint.embedding_matrix().float()
    vocabulary = label_rows(checkpoint, len(matrix))
    norms = torch.linalg.vector_norm(matrix, dim=1)
    finite = torch.isfinite(matrix).all(dim=1)
    vocabulary["norm"] = norms.numpy()
    query = None if token in (None, "") else find_row(checkpoint, str(token), len(matrix))
    special = vocabulary.loc[vocabulary["kind"].isin(["padding", "special"])]
    padding = vocabulary.loc[vocabulary["kind"] == "padding"]
    pad = padding.iloc[0] if len(padding) else None
    kept = norms[finite]
    if not len(kept):
        raise RequestError(
            f"Every embedding row of {checkpoint.name} holds NaN or infinity: nothing can be "
            "compared; look for an earlier checkpoint of the run."
        )
    return Embeddings(
        rows=matrix.shape[0],
        columns=matrix.shape[1],
        norms=Norms(*(float(value) for value in (kept.min(), kept.median(), kept.max()))),
        special=special.reindex(columns=["token", "token_id", "norm"]).reset_index(drop=True),
        undertrained=_undertrained(matrix, vocabulary, finite),
        neighbours=nearest_rows(matrix, vocabulary, query, k=k, metric=metric, finite=finite),
        warnings=not_finite_warning(vocabulary, finite),
        query=None if query is None else vocabulary["token"].iloc[query],
        query_id=query,
        metric=metric,
        tensor=checkpoint.embedding.name,
        pad_token=None if pad is None else pad["token"],
        pad_id=None if pad is None else int(pad["token_id"]),
        pad_norm=None if pad is None else float(pad["norm"]),
        pad_percentile=None
        if pad is None
        else 100 * float((kept < norms[int(pad["token_id"])]).float().mean()),
    )


def label_rows(checkpoint: Checkpoint, rows: int) -> pd.DataFrame:
    """What each embedding row stands for: token_id, token, kind; ids alone without a tokenizer."""
    if checkpoint.tokens:
        return checkpoint.tokens.vocabulary(rows)
    return pd.DataFrame(
        {"token_id": range(rows), "token": [f"id {row}" for row in range(rows)], "kind": "no token"}
    )


def find_row(checkpoint: Checkpoint, token: str, rows: int) -> int:
    """The embedding row of a token given as text or as "id 37".

    Raises:
        RequestError: If it is not one row.
    """
    if token.startswith("id ") and token[3:].isdecimal() and int(token[3:]) < rows:
        return int(token[3:])
    row = checkpoint.tokens.find(token) if checkpoint.tokens else None
    if row is None or row >= rows:
        raise RequestError(
            f"{token[:80]!r} is not one token of {checkpoint.name}: type a word that is in its "
            'vocabulary, or a row as "id 37".'
        )
    return row


def nearest_rows(
    matrix: torch.Tensor,
    vocabulary: pd.DataFrame,
    query: int | None,
    *,
    k: int,
    metric: str,
    finite: torch.Tensor,
) -> pd.DataFrame:
    """List the exact nearest rows of one row, itself left out.

    Args:
        matrix: (vocab, d_model).
        vocabulary: Labels of the rows.
        query: Row to compare with; None gives an empty list.
        k: Neighbours.
        metric: One of METRICS.
        finite: Rows that may be listed, (vocab,) of bool.

    Returns:
        token, token_id, similarity (for "euclidean" a distance), nearest first.
    """
    if query is None:
        return pd.DataFrame({"token": [], "token_id": [], "similarity": []}).astype(
            {"token": str, "token_id": int, "similarity": float}
        )
    scores = _scores(matrix, matrix[query], metric)
    order = -scores if metric == "euclidean" else scores
    order = order.masked_fill(~finite, -torch.inf)
    order[query] = -torch.inf
    best = order.topk(min(k, max(int(finite.sum()) - 1, 1))).indices
    best = best[torch.isfinite(order[best])]
    rows = vocabulary.iloc[best.numpy()]
    return pd.DataFrame(
        {
            "token": rows["token"].to_numpy(),
            "token_id": rows["token_id"].to_numpy(),
            "similarity": scores[best].numpy(),
        }
    )


def _scores(matrix: torch.Tensor, vector: torch.Tensor, metric: str) -> torch.Tensor:
    if metric == "euclidean":
        return torch.linalg.vector_norm(matrix - vector, dim=1)
    dots = matrix @ vector
    if metric == "dot":
        return dots
    return dots / (matrix.norm(dim=1) * vector.norm()).clamp_min(1e-12)


def _undertrained(
    matrix: torch.Tensor, vocabulary: pd.DataFrame, finite: torch.Tensor
) -> pd.DataFrame:
    """Rank tokens by how much their vectors look never trained.

    Land & Bartolo (2024), "Fishing for Magikarp": the cosine to the mean vector of rows known to be
    unused ([unusedN], rows past the tokenizer), after the mean of all rows is taken off. Where a
    checkpoint has fewer than three such rows the score is how far the norm lies below the median,
    0 (at or above it) to 1 (a zero vector).

    Returns:
        token, token_id, score (higher = more suspicious), without special and known unused tokens.
    """
    unused = torch.tensor(vocabulary["kind"].isin(["unused", "no token"]).tolist())
    ordinary = torch.tensor(vocabulary["kind"].isin(["word", "subword", "byte"]).tolist())
    ordinary &= finite
    references = unused & finite
    if int(references.sum()) >= MIN_REFERENCES and int(ordinary.sum()):
        centred = matrix - matrix[finite].mean(dim=0)
        scores = _scores(centred, centred[references].mean(dim=0), "cosine")
    else:
        norms = matrix.norm(dim=1)
        scores = (1 - norms / norms[finite].median().clamp_min(1e-12)).clamp_min(0)
    scores = scores.masked_fill(~ordinary, -torch.inf)
    best = scores.topk(min(UNDERTRAINED, int(ordinary.sum()))).indices
    rows = vocabulary.iloc[best.numpy()]
    return pd.DataFrame(
        {
            "token": rows["token"].to_numpy(),
            "token_id": rows["token_id"].to_numpy(),
            "score": scores[best].numpy(),
        }
    )


def not_finite_warning(vocabulary: pd.DataFrame, finite: torch.Tensor) -> tuple[str, ...]:
    """Name the rows that hold NaN or infinity, if there are any."""
    bad = vocabulary.loc[~finite.numpy()]
    if bad.empty:
        return ()
    first = zip(bad["token"].head(3), bad["token_id"].head(3), strict=True)
    named = ", ".join(f"{token} (id {token_id})" for token, token_id in first)
    return (
        f"{len(bad)} embedding rows hold NaN or infinity and are left out: {named}"
        f"{' and others' if len(bad) > 3 else ''}.",
    )
