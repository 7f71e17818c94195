"""How plausible a text is to a masked-LM head, and how two texts differ over the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Plausibility:
    """Every token's own plausibility in its place: it is masked, and the head is asked for it."""

    text: str
    by: str  # "token": it alone is masked; "word": the later pieces of its word as well
    device: str  # "cpu", "cuda:0", "mps"
    dtype: str
    milliseconds: float  # of all forward passes, the model already loaded
    # One row a token that the model read: position, token, token_id, special (bool: one that the
    # tokenizer adds or a mask token, never judged), word (counted in the text; -1: none),
    # probability (0..1), log_probability (natural), rank (1 = most likely, nullable integer),
    # best_token, best_id (nullable), best_probability (what the head would say instead), bits
    # (surprisal, -log2 of the probability). No numbers and "" where special.
    tokens: pd.DataFrame
    judged: int  # tokens that have numbers
    pseudo_log_likelihood: float  # sum of their log probabilities, natural
    pseudo_perplexity: float  # exp(-pseudo_log_likelihood / judged)
    warnings: tuple[str, ...]
