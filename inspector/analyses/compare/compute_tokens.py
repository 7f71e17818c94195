"""Match the embedding rows of two checkpoints by token, and measure how far each has moved."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from inspector.analyses.compare.result import TOKEN_COLUMNS, VocabularyMatch
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.placing.threads import single_threaded
from inspector.models.vocabulary.labels import label_rows, match_tokens
from inspector.progress import Progress
from inspector.store.readers.streams import work_ahead

FEW_NUMEL = 1 << 16  # numbers of rows that are measured at once, in float64: they stay in a processor's cache
EXAMPLES = 5  # rows without a partner that are named


@dataclass(frozen=True, slots=True)
class Partners:
    """Which rows of two matrices stand for the same token."""

    by: str  # "token" or "row"
    rows: torch.Tensor  # (matched,), rising
    other_rows: torch.Tensor  # (matched,)
    alone: torch.Tensor  # rows of the first without a partner, rising
    other_alone: torch.Tensor


@dataclass(frozen=True, slots=True)
class _Moves:
    """One number a matched row; NaN where either row holds NaN or infinity, or none can be told."""

    distance: torch.Tensor
    norm: torch.Tensor
    other_norm: torch.Tensor
    cosine: torch.Tensor
    differs: torch.Tensor  # of bool: as they are stored


def match_rows(first: StagedCheckpoint, second: StagedCheckpoint, rows: int, other_rows: int) -> Partners:
    """Match rows by the text of their tokens; by number where a checkpoint brings no tokenizer.

    Args:
        rows: Of the first's embedding matrix.
        other_rows: Of the second's.
    """
    if first.tokens is None or second.tokens is None:
        shared = min(rows, other_rows)
        numbers = torch.arange(shared)
        return Partners("row", numbers, numbers, torch.arange(shared, rows), torch.arange(shared, other_rows))
    pairs = match_tokens(first.tokens, second.tokens, rows, other_rows)
    matched = torch.tensor([row for row, _ in pairs], dtype=torch.long)
    others = torch.tensor([row for _, row in pairs], dtype=torch.long)
    return Partners("token", matched, others, _without(rows, matched), _without(other_rows, others))


def compare_rows(
    first: StagedCheckpoint, second: StagedCheckpoint, *, progress: Progress
) -> tuple[VocabularyMatch, pd.DataFrame]:
    """Measure how far each token's row of the input embeddings has moved.

    Args:
        first: One checkpoint, with an embedding matrix of floats.
        second: The other, likewise.
        progress: Told what is being done.

    Returns:
        The match, and Comparison.tokens; matrices of different widths have no distances.

    Raises:
        InspectorError: If a checkpoint has no embedding matrix, or its tokenizer cannot be read.
    """
    progress(None, "Matching tokens")
    one, other = first.embedding_matrix(), second.embedding_matrix()
    partners = match_rows(first, second, len(one), len(other))
    labels, other_labels = label_rows(first, len(one)), label_rows(second, len(other))
    progress(None, "Measuring how far tokens moved")
    moves = _measure(one, other, partners)
    frame = _frame(labels, partners, moves)
    finite = int((moves.norm.isfinite() & moves.other_norm.isfinite()).sum())
    match = VocabularyMatch(
        rows=len(one),
        other_rows=len(other),
        columns=one.shape[1],
        other_columns=other.shape[1],
        matched_by=partners.by,
        matched=len(frame),
        same_row=int((partners.rows == partners.other_rows).sum()),
        alone=len(partners.alone),
        other_alone=len(partners.other_alone),
        alone_examples=_examples(labels, partners.alone),
        other_alone_examples=_examples(other_labels, partners.other_alone),
        moved=int(moves.differs.sum()),
        not_finite=len(frame) - finite,
        median_distance=_median(moves.distance),
        median_cosine=_median(moves.cosine),
    )
    return match, frame


def _measure(one: torch.Tensor, other: torch.Tensor, partners: Partners) -> _Moves:
    width = max(one.shape[1], other.shape[1])
    found = torch.full((4, len(partners.rows)), math.nan, dtype=torch.float64)
    differs = torch.ones(len(partners.rows), dtype=torch.bool)

    def measure(place: slice) -> tuple[slice, torch.Tensor, torch.Tensor]:
        return place, *_measure_rows(*_pair(one, other, partners, place, width))

    with single_threaded():
        for place, numbers, unequal in work_ahead(_places(partners, width), measure):
            found[:, place], differs[place] = numbers, unequal
    distance, norm, other_norm, cosine = found
    if one.shape[1] != other.shape[1]:
        distance, cosine = torch.full_like(distance, math.nan), torch.full_like(cosine, math.nan)
    return _Moves(distance, norm, other_norm, cosine, differs)


def _measure_rows(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure some matched rows.

    Returns:
        (4, rows): distance, norm, other norm, cosine; NaN where either row is not finite. And whether they differ.
    """
    distance, norm, other_norm = (torch.linalg.vector_norm(each, dim=1) for each in (a - b, a, b))
    cosine = torch.linalg.vecdot(a, b) / (norm * other_norm)
    differs = (a != b).any(dim=1)
    found = torch.stack([distance, norm, other_norm, cosine.clamp(-1, 1)])
    bad = ~(norm + other_norm).isfinite()  # or too long for their squares, which is seldom
    if bad.any():
        bad = ~(a.isfinite().all(dim=1) & b.isfinite().all(dim=1))
        differs = ~((a == b) | (a.isnan() & b.isnan())).all(dim=1)
        found = found.masked_fill(bad, math.nan)
    return found, differs


def _places(partners: Partners, width: int) -> Iterator[slice]:
    """Matched rows, as many at a time as make about so many numbers."""
    count = max(1, FEW_NUMEL // max(1, width))
    for start in range(0, len(partners.rows), count):
        yield slice(start, min(start + count, len(partners.rows)))


def _pair(
    one: torch.Tensor, other: torch.Tensor, partners: Partners, place: slice, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Matched rows of both in float64, filled up with zeros to `width` columns."""
    a, b = (
        torch.nn.functional.pad(matrix[rows[place]].double(), (0, width - matrix.shape[1]))
        for matrix, rows in ((one, partners.rows), (other, partners.other_rows))
    )
    return a, b


def _frame(labels: pd.DataFrame, partners: Partners, moves: _Moves) -> pd.DataFrame:
    kept = labels.iloc[partners.rows.numpy()].reset_index(drop=True)
    relative = (moves.distance / moves.norm).masked_fill(moves.norm == 0, math.nan)
    return kept.assign(
        other_token_id=partners.other_rows.numpy(),
        distance=moves.distance.numpy(),
        relative_change=relative.numpy(),
        cosine=moves.cosine.numpy(),
        norm=moves.norm.numpy(),
        other_norm=moves.other_norm.numpy(),
    )[list(TOKEN_COLUMNS)]


def _median(numbers: torch.Tensor) -> float:
    """The median of what is a number; NaN where nothing is."""
    known = numbers[~numbers.isnan()]
    return float(np.median(known.numpy())) if len(known) else math.nan


def _examples(labels: pd.DataFrame, rows: torch.Tensor) -> tuple[str, ...]:
    return tuple(labels["token"].iloc[rows[:EXAMPLES].numpy()])


def _without(rows: int, taken: torch.Tensor) -> torch.Tensor:
    left = torch.ones(rows, dtype=torch.bool)
    left[taken] = False
    return left.nonzero()[:, 0]
