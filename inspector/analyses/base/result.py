"""Whether one checkpoint is the base of another, with the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd

# "not judged": too few numbers, or numbers that say neither, or other names in what may be one model type.
Verdict = Literal["same", "fine-tuned from", "merged with", "unrelated", "not judged"]
RELATED: tuple[Verdict, ...] = ("same", "fine-tuned from", "merged with")


@dataclass(frozen=True, slots=True)
class Relation:
    """What sampled rows of the matrices of two checkpoints have in common."""

    name: str
    other_name: str  # of the possible base
    fingerprint: str
    other_fingerprint: str
    verdict: Verdict
    matched: int  # matrices that both have, by name and by shape but for added rows
    equal: int  # of these: whose sampled numbers are equal, but for the rounding of another dtype
    own: int  # matrices that were looked at
    other: int  # likewise, of the possible base
    # Of the matched matrices that differ, their medians; None where none does
    cosine: float | None  # of both samples, their means taken off
    coefficient: float | None  # how much of the base is left in the sample: <own, base> / <base, base>
    relative_change: float | None  # |own - base| / |base|
    rank: int | None  # the largest rank of a difference; None where one has more than the sample can show
    tokens: int | None  # of this checkpoint's tokenizer; None where one of the two brings none
    other_tokens: int | None
    shared_tokens: int | None  # with one text in both, whatever their ids
    settings: tuple[str, ...]  # of config.json, that differ
    # One row a matched matrix: name, other_name, equal, cosine, coefficient, relative_change, rank (the last four NaN
    # or None where it is equal)
    tensors: pd.DataFrame
    warnings: tuple[str, ...] = ()
