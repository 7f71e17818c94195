"""Find tokens whose embedding rows look never, or hardly, trained.

After Land & Bartolo (2024), "Fishing for Magikarp: Automatically Detecting Under-trained Tokens in
Large Language Models", arXiv 2405.05417: where input and output embeddings are tied, the cosine to
the mean of rows that are known to be unused, because the softmax pushes all tokens that never occur
the same way; where they are not, the norm of the input embedding, because such a row has only ever
decayed. Where the unused rows do not stand out by the one, the other is tried. Two things differ
from the paper. It takes off the first principal component of the rows
as their constant part; here it is their mean. In vocabularies as small as the demos' the first
component of the centered rows *is* the direction of rare tokens: without it, the score tells tokens
that never occur from all others with an area under the curve of 0.55 (demo-bert), without the mean
with 0.997. And the paper lists the most suspicious 2 % and verifies them by prompting; here a token
is listed by thresholds on the score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pandas as pd
import torch

from inspector.analyses.embeddings import words_undertrained as words
from inspector.analyses.embeddings.compute_random import spread_if_random
from inspector.analyses.embeddings.compute_references import (
    MIN_REFERENCES,
    Measure,
    direction,
    find_references,
    mask_of,
    shortness,
)
from inspector.analyses.embeddings.result_health import Indicator
from inspector.models.vocabulary.labels import ORDINARY
from inspector.models.vocabulary.rows import RowFacts

MIN_ORDINARY = 20  # tokens from which a typical score can be told
ALONE, AGREED = 5.0, 4.0  # standard deviations off the typical token; with the bias agreeing
SHORT = 0.5  # without references: less than half of the median norm


@dataclass(frozen=True, slots=True)
class RowJudgment:
    """Every row's score, and which tokens are listed."""

    indicator: Indicator
    scores: torch.Tensor  # (rows,), NaN where not judged
    listed: torch.Tensor  # (rows,) of bool
    agreed: torch.Tensor  # (rows,) of bool: the output bias is low as well
    percentiles: torch.Tensor  # (rows,): share of ordinary tokens with a lower score, 0..100


def judge(
    matrix: torch.Tensor,
    facts: RowFacts,
    vocabulary: pd.DataFrame,
    *,
    tied: bool | None,
    bias: torch.Tensor | None = None,
    unreachable: tuple[int, ...] = (),
    initializer_range: float | None = None,
) -> RowJudgment:
    """Judge which ordinary tokens are under-trained.

    Args:
        matrix: Input embeddings, (vocab, d_model).
        vocabulary: Labels of the rows: token_id, token, kind.
        tied: Whether the output layer repeats the matrix; None: not known, taken as tied.
        bias: The output layer's, (vocab,), if it has one.
        unreachable: Rows that the tokenizer never produces; they stand in as references where
            fewer than three rows are known to be unused.
        initializer_range: Standard deviation of a fresh row, if the config says.

    Returns:
        The judgment. A token is listed whose score is at least half the way from the typical
        token to the unused rows, and 5 robust standard deviations (1.4826 times the median
        absolute deviation) off the typical token, or 4 where the output bias agrees by the same
        rule. Where the unused rows are hardly that far themselves, it is enough to be nearer to
        them than to the largest score that chance makes of so many tokens. Where no row is known
        to be unused, or those do not stand out, a token is listed whose norm is less than half of
        the median and 5 deviations below it.
    """
    unused, usable = _sides(vocabulary, facts, unreachable)
    if int(usable.sum()) < MIN_ORDINARY:
        return _nothing(len(matrix), Indicator("none", 0, words.TOO_FEW.format(count=int(usable.sum()))))
    low_bias = _low_bias(bias, usable, unused)
    measures = (shortness, direction) if tied is False else (direction, shortness)
    why = words.NO_REFERENCE
    if len(unused) >= MIN_REFERENCES:
        for measure in (each(matrix, facts, unused, usable) for each in measures):
            found = _cut(measure, vocabulary, usable, low_bias) if measure else None
            if found:
                return found
        why = words.NO_DIFFERENCE.format(count=len(unused))
    found = _short_rows(matrix, facts, usable, why, low_bias)
    if not found.listed.any() and (spread := spread_if_random(matrix, usable)) is not None:
        return replace(found, indicator=_untrained(found.indicator, spread, initializer_range))
    return found


def _sides(
    vocabulary: pd.DataFrame, facts: RowFacts, unreachable: tuple[int, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows known to be unused, and which rows are judged, (vocab,) of bool."""
    whole = facts.finite & ~facts.zero
    if vocabulary["kind"].unique().tolist() == ["no token"]:  # there is no tokenizer
        return torch.empty(0, dtype=torch.long), whole
    unused = find_references(vocabulary, facts, unreachable)
    ordinary = torch.tensor(vocabulary["kind"].isin(ORDINARY).tolist(), dtype=torch.bool)
    return unused, whole & ordinary & ~mask_of(unused, len(whole))


def _cut(measure: Measure, vocabulary: pd.DataFrame, usable: torch.Tensor, low_bias: _LowBias) -> RowJudgment | None:
    """List what lies beyond the thresholds; None where the unused rows themselves do not."""
    own = measure.scores[usable]
    normal = measure.normal(own)
    typical, reference = own.median(), measure.references.median()
    half = (typical + reference) / 2
    between = _between(normal, measure.normal(reference))
    alone, agreed = (
        float(torch.maximum(half, measure.score(torch.minimum(between, place))))
        for place in (normal.median() + count * _deviation(normal) for count in (ALONE, AGREED))
    )
    if measure.references.quantile(0.1) < alone or half <= typical:
        return None
    indicator = Indicator(
        measure.name,
        len(measure.references),
        "",
        threshold=alone,
        agreed_threshold=agreed if low_bias.threshold is not None else None,
        bias_threshold=low_bias.threshold,
        typical_score=float(typical),
        reference_score=float(reference),
    )
    outliers = vocabulary["token"].iloc[list(measure.outliers)].tolist()
    indicator = replace(indicator, statement=words.scored(indicator, outliers))
    listed = (measure.scores >= alone) | ((measure.scores >= agreed) & low_bias.rows)
    return _judgment(indicator, measure.scores, usable, listed, low_bias)


def _between(normal: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Half the way from the largest that chance makes of so many normal numbers to the unused rows.

    Where rows fill few dimensions, 5 deviations may lie beyond the unused rows themselves.
    """
    largest = math.sqrt(2 * math.log(len(normal)))
    return (normal.median() + largest * _deviation(normal) + reference) / 2


def _deviation(values: torch.Tensor) -> torch.Tensor:
    """The standard deviation as the median absolute deviation tells it."""
    return 1.4826 * (values - values.median()).abs().median()


def _judgment(
    indicator: Indicator, scores: torch.Tensor, usable: torch.Tensor, listed: torch.Tensor, low_bias: _LowBias
) -> RowJudgment:
    kept = scores.masked_fill(~usable, torch.nan)
    ordered = scores[usable].sort().values
    percentiles = 100 * torch.searchsorted(ordered, scores.contiguous()) / len(ordered)
    return RowJudgment(indicator, kept, listed & usable, low_bias.rows, percentiles)


def _nothing(rows: int, indicator: Indicator) -> RowJudgment:
    none = torch.zeros(rows, dtype=torch.bool)
    unknown = torch.full((rows,), torch.nan)
    return RowJudgment(indicator, unknown, none, none, unknown)


def _short_rows(
    matrix: torch.Tensor, facts: RowFacts, usable: torch.Tensor, why: str, low_bias: _LowBias
) -> RowJudgment:
    """Without references: rows that are far shorter than the typical one."""
    measure = shortness(matrix, facts, torch.empty(0, dtype=torch.long), usable)
    normal = measure.normal(measure.scores[usable])
    far = measure.score(normal.median() + ALONE * _deviation(normal))
    threshold = max(SHORT, float(far))
    if threshold >= 1:
        return _nothing(len(matrix), Indicator("none", 0, f"{why} {words.TOO_VARIED}"))
    statement = f"{why} {words.NORM_ALONE.format(share=1 - threshold)}"
    indicator = Indicator("norm", 0, statement, threshold=threshold, typical_score=0.0)
    return _judgment(indicator, measure.scores, usable, measure.scores > threshold, low_bias)


@dataclass(frozen=True, slots=True)
class _LowBias:
    """Which output biases are as low as those of rare tokens."""

    rows: torch.Tensor  # (vocab,) of bool
    threshold: float | None  # None: there is no bias that tells


def _low_bias(bias: torch.Tensor | None, usable: torch.Tensor, unused: torch.Tensor) -> _LowBias:
    """The same rule for the output bias: an MLM head's learns log frequencies."""
    none = _LowBias(torch.zeros_like(usable), None)
    if bias is None or bias.shape != usable.shape:
        return none
    own = bias[usable].float()
    own = own[torch.isfinite(own)]
    reference = bias[unused].float().median() if len(unused) >= MIN_REFERENCES else None
    if not len(own) or reference is None:
        return none
    typical = own.median()
    threshold = torch.minimum((typical + reference) / 2, typical - ALONE * _deviation(own))
    if not reference <= threshold < typical:
        return none
    return _LowBias(bias.float() <= threshold, float(threshold))


def _untrained(indicator: Indicator, deviation: float, initializer_range: float | None) -> Indicator:
    fresh = initializer_range is not None and abs(deviation / initializer_range - 1) < 0.1
    statement = words.untrained(deviation, fresh=fresh)
    return replace(indicator, measure="none", statement=statement, looks_untrained=True)
