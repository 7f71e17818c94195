"""Plausibility of a text to a language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Plausibility:
    """The plausibility of every token in its place: masked there, or predicted from the tokens before it."""

    text: str
    by: str  # "token": only the token is masked; "word": the later pieces of its word, too
    device: str  # "cpu", "cuda:0", "mps"
    dtype: str
    milliseconds: float  # of all forward passes, after the model is loaded
    # One row a token that the model read: position, token, token_id, special (bool: one that the
    # tokenizer adds, or a mask token), word (counted in the text; -1: none), judged (bool),
    # probability (0..1), log_probability (natural), rank (1 = most likely, nullable integer),
    # best_token, best_id (nullable), best_probability (what the head would say instead), bits
    # (surprisal, -log2 of the probability). No numbers and "" where not judged.
    tokens: pd.DataFrame
    judged: int  # tokens with scores: for a masked LM all but special ones, for a causal one all but the first
    pseudo_log_likelihood: float | None  # sum of their natural log probabilities; None for a causal model
    pseudo_perplexity: float | None  # exp(-pseudo_log_likelihood / judged)
    method: str  # "masked": each in turn; "causal": from the tokens before it
    log_likelihood: float | None  # for a causal model: sum of the natural log probabilities
    perplexity: float | None  # exp(-log_likelihood / judged)
    # The most likely tokens of every judged position: position, rank (from 1), token, token_id,
    # probability, log_probability
    alternatives: pd.DataFrame
    warnings: tuple[str, ...]
