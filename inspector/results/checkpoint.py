"""What the files of a checkpoint contain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Opened:
    """A checkpoint that is staged and ready for requests."""

    fingerprint: str  # 64 hex digits
    reference: str  # as used in links; an "incoming" upload becomes "upload:…"
    name: str
    warnings: tuple[str, ...]
    adapter: Opened | None = None  # the adapter on it, which its name ends with


HEADS = (
    "masked_lm",
    "causal_lm",
    "next_sentence",
    "sequence_classification",
    "token_classification",
    "question_answering",
    "multiple_choice",
)
LANGUAGE_HEADS = HEADS[:2]


@dataclass(frozen=True, slots=True)
class TokenizerInfo:
    """Facts from the tokenizer files."""

    kind: str  # "WordPiece", "BPE", "Unigram", "WordLevel" or the file's name
    size: int  # ids that the tokenizer knows
    pad_token: str | None
    pad_id: int | None
    mask_token: str | None
    mask_id: int | None
