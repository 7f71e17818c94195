"""What the files of a checkpoint say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    pass


@dataclass(frozen=True, slots=True)
class Opened:
    """A checkpoint that is staged and can be asked about."""

    fingerprint: str  # 64 hex digits
    reference: str  # as it goes into a link; an "incoming" upload has become "upload:…"
    name: str
    warnings: tuple[str, ...]


HEADS = (
    "masked_lm",
    "causal_lm",
    "next_sentence",
    "sequence_classification",
    "token_classification",
    "question_answering",
    "multiple_choice",
)
