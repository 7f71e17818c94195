"""How similar texts are, and which pairs of tokens make them so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Similarity:
    """The scores of one text against others."""

    texts: tuple[str, ...]
    pooling: str  # the modes that were used, joined by " + "
    declared_pooling: str | None  # those that the checkpoint states; None: it states none
    modules: tuple[str, ...]  # what made the vectors, in order, such as "Transformer", "Pooling", "Normalize"
    dimensions: int  # of a vector
    measure: str  # one of MEASURES
    declared_measure: str | None  # None: the checkpoint states none, and the library's own was used
    prompt: str  # that was put before each text
    prompts: tuple[str, ...]  # names of those that the checkpoint states
    include_prompt: bool  # whether the prompt's tokens are pooled
    additive: bool  # whether the score is exactly a sum over pairs of tokens
    device: str
    dtype: str
    milliseconds: float  # of the forward passes of all texts, each alone
    # The first text against each other: first and second (numbers of texts, from 0), score
    scores: pd.DataFrame
    # What each pair of tokens brings of a score, which they add up to: first and second (texts), first_position and
    # second_position (-1: a bias of a module after the pooling), first_token, second_token, part. Whole or not at all
    # for each text: up to 40,000 rows of all. Empty: not additive, or no room
    pairs: pd.DataFrame
    tokens: pd.DataFrame  # text, position, token, token_id
    # The same score of texts that were padded together: first, second, alone, masked (the model and the pooling are
    # given the attention mask), pooled_over_padding (only the model is; missing with padding on the left, where states
    # of padding depend on the kind of attention), unmasked (neither is), part (of `unmasked`, by pairs with a position
    # of padding; missing where scores are no sums), first_padding and second_padding (positions). Empty: no token pads,
    # or there is no room
    padding: pd.DataFrame
    padding_side: str
    warnings: tuple[str, ...]
