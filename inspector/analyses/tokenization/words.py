"""Sentences about what a tokenizer makes of a text."""

from __future__ import annotations

from inspector.analyses.tokenization.result import Tokenization
from inspector.text import plural

LOWERED = (
    "sentence-transformers lowercases texts before it tokenizes them (do_lower_case in its settings); here they are "
    "tokenized as they are."
)
NO_CLASS = "How long a text may be is not known without torch: {how} adds it."
NO_PADDING = "The tokenizer of {name} has no padding token: id 0 fills the batch, and the attention mask hides it."


def too_long(name: str, tokens: int, positions: int) -> str:
    """A text that the model cannot read."""
    return f"The text has {tokens:,} tokens, more than the {positions:,} positions of {name}: the model cannot read it."


def longest(result: Tokenization) -> str:
    """What bounds a text."""
    if result.longest_said:
        return f"sentence-transformers cuts longer texts: {result.longest_said}."
    return "The model's positions: a longer input has no position embeddings."


def cut(tokens: int, longest: int, said: str) -> str:
    """A text that sentence-transformers shortens."""
    return (
        f"The text has {tokens:,} tokens. sentence-transformers keeps {longest:,} ({said}) and leaves the rest out; "
        "here, all of them are shown."
    )


def headline(result: Tokenization) -> str:
    """How many tokens the texts become."""
    texts, tokens = len(result.batch), sum(result.batch["tokens"].tolist())
    unknown = sum(result.batch["unknown"].tolist())
    said = f"{plural(texts, 'text')} of {plural(tokens, 'token')} by {result.kind}"
    return f"{said}, {unknown:,} of them unknown." if unknown else f"{said}, none of them unknown."


def facts(result: Tokenization) -> dict[str, str]:
    """The tokenizer in a few values."""
    named = ", ".join(f"{role} {token}" for role, token in result.special.items() if token)
    return {
        "Tokenizer": f"{result.kind}, {result.size:,} ids",
        "Longest text": "no limit" if result.longest is None else plural(result.longest, "token"),
        "Special tokens": named or "none",
    }


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
