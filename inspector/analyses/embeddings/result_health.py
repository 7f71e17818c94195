"""Problems of a vocabulary, and how they were judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class EqualRows:
    """Rows of the embedding matrix that are bitwise equal."""

    count: int  # at least two
    what: str  # "unused" if no row has a token in use, "tokens" otherwise
    norm: float
    tokens: tuple[str, ...]
    token_ids: tuple[int, ...]  # ascending


@dataclass(frozen=True, slots=True)
class Indicator:
    """How under-trained tokens were judged, and the threshold for listing them.

    Scores grow with suspicion. "direction": the cosine of a row to the mean of rows known to be
    unused, the mean of all rows taken off, -1..1. "norm": how far a row's norm lies below the
    median, 0 (at it) to 1 (a zero row); longer rows are below 0.
    """

    measure: str  # "direction", "norm", or "none" where nothing can be told
    references: int  # known unused rows that the judgment is based on; 0: none
    statement: str  # the method with its numbers, in sentences
    threshold: float | None = None  # score from which a token is listed
    agreed_threshold: float | None = None  # likewise where the output bias agrees
    bias_threshold: float | None = None  # output bias at or below which it agrees
    typical_score: float | None = None  # median of the ordinary tokens
    reference_score: float | None = None  # median of the unused rows, each against the others
    looks_untrained: bool = False  # the whole matrix is indistinguishable from random numbers


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One problem that every row was checked for."""

    name: str
    count: int  # 0: nothing found
    status: str  # "ok", "note", "warn" or "fail"
    detail: str  # one sentence


@dataclass(frozen=True, slots=True)
class Health:
    """Problems of the rows of an embedding matrix."""

    findings: tuple[RowProblem, ...]  # one for each problem, in a fixed order
    indicator: Indicator
    equal_rows: tuple[EqualRows, ...]  # zero rows and rows with NaN left out; largest group first
    zero_rows: pd.DataFrame  # token, token_id, kind
    not_finite_rows: pd.DataFrame  # token, token_id, kind, what ("NaN", "infinity")
    rows_beyond_tokenizer: pd.DataFrame  # token_id, norm: rows past the tokenizer's last id
    tokens_beyond_rows: pd.DataFrame  # token, token_id: ids that no row answers to
    unreachable: pd.DataFrame  # token, token_id, norm, listed (as under-trained, bool)
    # score (float32, NaN where not judged) and flagged (bool) of every row, in the rows' order
    scores: pd.DataFrame = local()
