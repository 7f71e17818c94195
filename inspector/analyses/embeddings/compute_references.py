"""Rows that are known to be unused, and the scores that are taken from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import torch

from inspector.models.vocabulary.labels import ORDINARY
from inspector.models.vocabulary.rows import RowFacts, cosines

MIN_REFERENCES = 3  # unused rows from which a direction or a norm can be taken
MAX_REFERENCES = 4096  # spread evenly over all of them
NEAR_MEAN = 0.1  # unused rows this near the mean of all rows, in median distances, have no direction
IMPOSSIBLE_BYTES = [f"<0x{byte:02X}>" for byte in (0xC0, 0xC1, *range(0xF5, 0x100))]  # in UTF-8
SENTINEL = "<extra_id_"  # T5's are trained, though they look unused
SAMPLE = 4096  # rows whose median distance from the mean stands for all


@dataclass(frozen=True, slots=True)
class Measure:
    """A score of every row, and how to make its chance variation normal."""

    name: str  # of results.Indicator
    scores: torch.Tensor  # (rows,), more suspicious rows higher
    references: torch.Tensor  # scores of the unused rows, each against the others
    normal: Callable[[torch.Tensor], torch.Tensor]
    score: Callable[[torch.Tensor], torch.Tensor]  # the way back
    outliers: tuple[int, ...] = ()  # rows said to be unused that are not like the others


def find_references(vocabulary: pd.DataFrame, facts: RowFacts, unreachable: tuple[int, ...]) -> torch.Tensor:
    """Rows known to be unused, at most 4,096 of them, ascending.

    `[unusedN]` and their like, rows without a token, and bytes that no UTF-8 text holds; where
    these are fewer than three, tokens that the tokenizer never produces as well.
    """
    token, kind = vocabulary["token"], vocabulary["kind"]
    known = kind.isin(["unused", "no token"]) & ~token.str.startswith(SENTINEL)
    known |= kind.isin(ORDINARY) & token.isin(IMPOSSIBLE_BYTES)
    rows = torch.tensor(known.tolist(), dtype=torch.bool) & facts.finite & ~facts.zero
    if int(rows.sum()) < MIN_REFERENCES:
        rows |= mask_of(torch.tensor(unreachable, dtype=torch.long), len(rows)) & ~facts.zero
        rows &= facts.finite
    found = rows.nonzero()[:, 0]
    if len(found) <= MAX_REFERENCES:
        return found
    return found[torch.linspace(0, len(found) - 1, MAX_REFERENCES).long()]


def mask_of(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Mark some of so many rows, (count,) of bool."""
    mask = torch.zeros(count, dtype=torch.bool)
    mask[rows] = True
    return mask


def direction(matrix: torch.Tensor, facts: RowFacts, unused: torch.Tensor, usable: torch.Tensor) -> Measure | None:
    """The cosine to the mean of the unused rows, the mean of all rows taken off."""
    centered = matrix[unused].float() - facts.mean
    lengths = torch.linalg.vector_norm(centered, dim=1)
    typical = usable.nonzero()[:SAMPLE, 0]
    around = torch.linalg.vector_norm(matrix[typical].float() - facts.mean, dim=1).median()
    if lengths.median() < NEAR_MEAN * around:
        return None
    against = _against_others(centered)
    like = against >= 0.5 * against.median()
    outliers = unused[~like] if against.median() > 0 else unused[:0]
    if len(outliers):
        centered = centered[like]
        against = _against_others(centered)
    return Measure(
        "direction",
        cosines(matrix, facts.mean, centered.mean(dim=0)),
        against,
        # By chance, -(d - 1) ln(1 - cos²) is nearly the square of a standard normal number, d
        # being the dimensions that the rows really fill.
        normal=lambda x: x.sign() * (-torch.log1p(-(x * x).clamp(max=1 - 1e-7))).sqrt(),
        score=lambda z: z.sign() * (1 - (-z * z).exp()).sqrt(),
        outliers=tuple(outliers.tolist()),
    )


def _against_others(centered: torch.Tensor) -> torch.Tensor:
    """The cosine of each row to the mean of the others, (rows,)."""
    others = centered.sum(dim=0) - centered
    return torch.nn.functional.cosine_similarity(others, centered, dim=1)


def shortness(matrix: torch.Tensor, facts: RowFacts, unused: torch.Tensor, usable: torch.Tensor) -> Measure:
    """How far the norm lies below the typical token's, as a share of it."""
    scores = 1 - facts.norms / facts.norms[usable].median()
    return Measure(
        "norm",
        scores,
        scores[unused],
        # Wilson & Hilferty (1931): the cube root of a chi-squared number is nearly normal.
        normal=lambda x: -((1 - x).clamp_min(0) ** (2 / 3)),
        score=lambda z: 1 - (-z).clamp_min(0) ** 1.5,
    )
