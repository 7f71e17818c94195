"""What the files of a checkpoint contain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Opened:
    """A checkpoint that is staged and ready for requests."""

    fingerprint: str  # 64 hex digits; of a base with an adapter on it, those of both
    reference: str  # as used in links; an "incoming" upload becomes "upload:…"
    name: str
    warnings: tuple[str, ...]
    on_hub_nbytes: int = 0  # of weights that are still on the hub, whose headers alone were fetched; 0: all is here
    base: Opened | None = None  # of one with an adapter on it: the one without
    adapter: Opened | None = None  # the adapter on it

    @property
    def parts(self) -> tuple[Opened, ...]:
        """Base and adapter; of any other checkpoint itself."""
        return (self.base, self.adapter) if self.base and self.adapter else (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """What the person calls it, or its parts."""
        return tuple(each.name for each in self.parts)


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
