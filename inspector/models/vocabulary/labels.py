"""Name the rows of an embedding matrix, and find rows by name and by nearness."""

from __future__ import annotations

import re

import pandas as pd
import torch

from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.tokens import Tokens
from inspector.models.vocabulary.rows import RowFacts, blocks, read_facts
from inspector.progress import Progress

ORDINARY = ("word", "subword", "byte")  # kinds of token that are text, and no marker
MEASURED = "measured embedding rows"
ROW = re.compile(r"id[ :](\d{1,18})")


def label_rows(checkpoint: StagedCheckpoint, rows: int) -> pd.DataFrame:
    """What each embedding row stands for: token_id, token, kind; ids alone without a tokenizer."""
    if checkpoint.tokens:
        return checkpoint.tokens.vocabulary(rows)
    return pd.DataFrame({"token_id": range(rows), "token": [f"id {row}" for row in range(rows)], "kind": "no token"})


def match_tokens(first: Tokens, second: Tokens, rows: int, other_rows: int) -> list[tuple[int, int]]:
    """Match rows of two vocabularies by the text of their tokens.

    Args:
        first: A tokenizer.
        second: Another one.
        rows: How many of the first are looked at.
        other_rows: Likewise of the second.

    Returns:
        Rows of both, the first's rising.
    """
    there = {token: row for row in range(other_rows) if (token := second.raw(row)) is not None}
    named = ((row, first.raw(row)) for row in range(rows))
    return [(row, there[token]) for row, token in named if token is not None and token in there]


def measured_rows(checkpoint: StagedCheckpoint, progress: Progress) -> tuple[torch.Tensor, RowFacts, pd.DataFrame]:
    """Read the input embedding matrix, measure its rows, and label them: token_id, token, kind, norm.

    Raises:
        NotInCheckpointError: If there is none.
    """
    progress(None, "Reading the embedding matrix")
    matrix = checkpoint.embedding_matrix()
    facts: RowFacts = checkpoint.kept.get(MEASURED) or read_facts(matrix)
    checkpoint.kept[MEASURED] = facts
    return matrix, facts, label_rows(checkpoint, len(matrix)).assign(norm=facts.norms.numpy())


def is_row(token: str) -> bool:
    """Whether a token is given by its row, as "id 37" or "id:37"."""
    return ROW.fullmatch(token) is not None


def find_row(checkpoint: StagedCheckpoint, token: str, rows: int, *, option: str) -> int:
    """Find the embedding row of a token given as text, or as "id 37" or "id:37".

    Args:
        checkpoint: Whose tokenizer knows the token.

    Raises:
        RequestError: If it is not one row.
    """
    numbered = ROW.fullmatch(token)
    if numbered and int(numbered[1]) < rows:
        return int(numbered[1])
    row = checkpoint.tokens.find(token) if checkpoint.tokens else None
    if row is None or row >= rows:
        raise RequestError(
            f"{token[:80]!r} is not a single token of {checkpoint.name}: type a word that is in its "
            'vocabulary, or a row as "id 37".',
            option=option,
        )
    return row


def nearest_rows(
    matrix: torch.Tensor, vocabulary: pd.DataFrame, query: int | None, *, k: int, metric: str, facts: RowFacts
) -> pd.DataFrame:
    """List the exact nearest rows of one row, itself left out.

    Args:
        matrix: (vocab, d_model), of any dtype; compared in float32.
        query: Row to compare with; None gives an empty list.
        metric: "cosine", "dot" or "euclidean".
        facts: Of the rows; those that are not finite are not listed.

    Returns:
        token, token_id, similarity (for "euclidean" a distance), nearest first.
    """
    if query is None:
        return pd.DataFrame({"token": [], "token_id": [], "similarity": []}).astype(
            {"token": str, "token_id": int, "similarity": float}
        )
    scores = _scores(matrix, matrix[query].float(), metric, facts.norms)
    order = -scores if metric == "euclidean" else scores
    order = order.masked_fill(~facts.finite, -torch.inf)
    order[query] = -torch.inf
    best = order.topk(min(k, max(int(facts.finite.sum()) - 1, 1))).indices
    best = best[torch.isfinite(order[best])]
    rows = vocabulary.iloc[best.numpy()]
    return pd.DataFrame(
        {"token": rows["token"].to_numpy(), "token_id": rows["token_id"].to_numpy(), "similarity": scores[best].numpy()}
    )


def _scores(matrix: torch.Tensor, vector: torch.Tensor, metric: str, norms: torch.Tensor) -> torch.Tensor:
    # In place: small results between the blocks would keep the memory of each from the next one.
    scores = torch.empty(len(matrix))
    for place, block in blocks(matrix):
        far = metric == "euclidean"
        scores[place] = torch.linalg.vector_norm(block - vector, dim=1) if far else block @ vector
    return scores / (norms * vector.norm()).clamp_min(1e-12) if metric == "cosine" else scores


def not_finite_warning(vocabulary: pd.DataFrame, finite: torch.Tensor) -> tuple[str, ...]:
    """Name the rows that hold NaN or infinity, if there are any."""
    bad = vocabulary.loc[~finite.numpy()]
    if bad.empty:
        return ()
    first = zip(bad["token"].head(3), bad["token_id"].head(3), strict=True)
    named = ", ".join(f"{token} (id {token_id})" for token, token_id in first)
    return (
        f"{len(bad)} embedding rows contain NaN or infinity and are left out: {named}"
        f"{' and others' if len(bad) > 3 else ''}.",
    )
