"""Sentences about what a tokenizer makes of a text."""

from __future__ import annotations

from inspector.analyses.tokenization.result import Tokenization
from inspector.text import plural

NO_PADDING = "The tokenizer of {name} has no padding token: id 0 fills the batch, and the attention mask hides it."


def too_long(name: str, tokens: int, positions: int) -> str:
    """A text that the model cannot read."""
    return f"The text has {tokens:,} tokens, more than the {positions:,} positions of {name}: the model cannot read it."


def special(result: Tokenization) -> str:
    """Which special tokens there are."""
    named = ", ".join(f"{role} {token}" for role, token in result.special.items() if token)
    return f"Special tokens: {named or 'none'}."


def batch(result: Tokenization) -> str:
    """The size of the batch."""
    return f"The batch: {plural(len(result.batch), 'sequence')} of {plural(result.padded_to, 'token')}"


def padding(result: Tokenization) -> str:
    """How the sequences of a batch get one length."""
    return (
        f"All sequences in a batch have the same length: shorter ones are padded on the {result.padding_side}, and the "
        "model ignores the padding, where the attention mask is 0."
    )
