"""What the files of a checkpoint contain."""

from __future__ import annotations

from dataclasses import dataclass

LINK_DIGITS = 16  # of an upload's fingerprint
TYPED_BARE = ("path", "hub")  # kinds that the command line tells by their value


@dataclass(frozen=True, slots=True)
class Opened:
    """A checkpoint that is staged and ready for requests."""

    fingerprint: str  # 64 hex digits
    reference: str  # as used in links; an "incoming" upload becomes "upload:…"
    name: str
    warnings: tuple[str, ...]

    @property
    def link(self) -> str:
        """The reference for a link, in which an upload's first digits are enough."""
        kind, _, value = self.reference.partition(":")
        return f"{kind}:{value[:LINK_DIGITS]}" if kind == "upload" else self.reference

    @property
    def typed(self) -> str:
        """What the command line takes for it: a path, a hub id, a demo's name, or an upload as in a link."""
        kind, _, value = self.reference.partition(":")
        return value if kind in TYPED_BARE else self.link


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
