"""How plausible a text is to a masked-LM head, and how two texts differ over the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

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
    # probability (0..1), log_probability (natural), rank (1 = likeliest, nullable integer),
    # best_token, best_id (nullable), best_probability (what the head would say instead), bits
    # (surprisal, -log2 of the probability). No numbers and "" where special.
    tokens: pd.DataFrame
    judged: int  # tokens that have numbers
    pseudo_log_likelihood: float  # sum of their log probabilities, natural
    pseudo_perplexity: float  # exp(-pseudo_log_likelihood / judged)
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contrast:
    """What a masked-LM head says for the one mask of two texts, over the whole vocabulary."""

    first_text: str
    second_text: str
    device: str
    dtype: str
    milliseconds: float  # the forward pass of both texts, the model already loaded
    rows: int  # tokens of the vocabulary
    jensen_shannon: float  # divergence of the two distributions in bits, 0 (the same)..1
    floor: float  # log(1 / rows): a likelihood below it is worse than an even guess
    # Tokens at or above the floor that one text makes likelier, the most contrasted first: token,
    # token_id, kind, first, second, likelihood, difference
    favours_first: pd.DataFrame
    favours_second: pd.DataFrame
    file: str | None  # that the whole vocabulary was written to
    warnings: tuple[str, ...]
    # The whole vocabulary by token_id: token_id, token, kind (one of KINDS), first and second (log
    # probabilities, natural), likelihood (their mean), difference (first - second)
    tokens: pd.DataFrame = local()
