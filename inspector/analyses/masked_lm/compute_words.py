"""Score words of one or several tokens in the place of a mask."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from inspector.models.masking.reading import Question, Wanted, keep_token
from inspector.models.masking.text import MaskedText, Word
from inspector.models.tokens import Tokens


def score_words(text: MaskedText, words: Sequence[Word], tokens: Tokens) -> Question:
    """Score each word at each mask, the other masks left open.

    A word of n pieces takes the place of the mask as n masks, which are filled from left to right:
    log p(word) is the sum over pieces of log p(piece | the pieces before it, masks after it). Words
    of different n are thus asked for under different widths, and a model that expects one token
    there may give every longer word little: compare words of one length first.

    Returns:
        A frame for each mask, as results.Mask says; None for each without words.
    """
    if not words:
        return [None for _ in text.masks]
    asked, places = [], []
    for number, position in enumerate(text.masks):
        for word in words:
            wanted = _chain(text, number, position, word.pieces[number])
            asked += wanted
            places += [(number, word)] * len(wanted)
    totals: dict[tuple[int, str], float] = {}
    for (number, word), found in zip(places, (yield asked), strict=True):
        entry = found[number] if len(word.pieces[number]) == 1 else found[0]
        totals[number, word.word] = totals.get((number, word.word), 0.0) + entry
    return [
        _frame({word: totals[number, word.word] for word in words}, number, tokens) for number in range(len(text.masks))
    ]


def _chain(text: MaskedText, number: int, position: int, pieces: Sequence[int]) -> list[Wanted]:
    """One reading for each piece of a word; a single one is read off the text as it stands."""
    if len(pieces) == 1:
        return [Wanted(text.row, keep_token(pieces[0]))]
    masks = (text.mask_id,) * len(pieces)
    return [
        Wanted(text.replaced(position, (*pieces[:known], *masks[known:]), wanted=position + known), keep_token(piece))
        for known, piece in enumerate(pieces)
    ]


def _frame(totals: dict[Word, float], number: int, tokens: Tokens) -> pd.DataFrame:
    ranked = sorted(totals.items(), key=lambda pair: -pair[1])
    return pd.DataFrame(
        {
            "word": [word.word for word, _ in ranked],
            "tokens": [" ".join(tokens.visible(index) for index in word.pieces[number]) for word, _ in ranked],
            "pieces": [len(word.pieces[number]) for word, _ in ranked],
            "log_probability": [total for _, total in ranked],
            "probability": [math.exp(total) for _, total in ranked],
        }
    )
