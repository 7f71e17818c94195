"""Tokens of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Tokenization:
    """Texts as a tokenizer splits them."""

    kind: str  # "WordPiece", "BPE", "Unigram" or "WordLevel"
    size: int  # number of ids
    longest: int | None  # tokens of a text that are read: the model's positions, or fewer; None if unlimited
    special: dict[str, str | None]  # role -> token
    # One row a token of every sequence, padding included: sequence, position, token (visible),
    # piece (as the vocabulary has it), token_id, start, end (characters of its text), text (there),
    # part ("first", "second" or ""), word (counted in its text; -1: none), type_id, attention,
    # is_special, is_unknown
    tokens: pd.DataFrame
    # One row a sequence: sequence, tokens, padding, unknown, ids, type_ids, attention_mask (lists)
    batch: pd.DataFrame
    padded_to: int
    padding_side: str  # "right" or "left"
    warnings: tuple[str, ...]
    truncation_side: str = "right"  # or "left": where a tokenizer that shortens a text leaves tokens out
    tokenizer_class: str | None = None  # of transformers, that reads the files; None: they are read without one
    longest_said: str = ""  # what sets `longest`, if not the model's positions: a setting, and its file or class
