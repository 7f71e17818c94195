"""Sentences about what a tokenizer makes of a text."""

from __future__ import annotations

from inspector.analyses.tokenization.result import Tokenization


def padding(result: Tokenization) -> str:
    """How the sequences of a batch get one length."""
    return (
        f"All sequences in a batch have the same length: shorter ones are padded on the {result.padding_side}, and the "
        "model ignores the padding, where the attention mask is 0."
    )
