"""Sentences about a mask's answer."""

from __future__ import annotations

HOW = (
    "The text goes through the encoder once. At each mask the head turns the hidden state into one logit per token "
    "(dense layer, activation, LayerNorm, product with the word embeddings, bias), and a softmax over the whole "
    "vocabulary makes probabilities, even where only some words are compared."
)


def joint(order: str) -> str:
    """How several masks were filled together."""
    way = "from left to right" if order == "left" else "the most confident mask first"
    return (
        f"A beam search fills the masks {way}, each given those filled before. The best answers to each mask alone "
        "need not fit together."
    )
