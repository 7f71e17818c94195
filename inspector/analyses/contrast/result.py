"""How two texts differ over the whole vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Contrast:
    """Predictions of a masked-LM head for the one mask of each of two texts, over the whole vocabulary."""

    first_text: str
    second_text: str
    device: str
    dtype: str
    milliseconds: float  # the forward pass of both texts, after the model is loaded
    rows: int  # tokens of the vocabulary
    jensen_shannon: float  # divergence of the two distributions in bits, 0 (the same)..1
    floor: float  # log(1 / rows): a lower likelihood is worse than a uniform guess
    # Tokens at or above the floor that one text makes more likely, the most contrasted first: token,
    # token_id, kind, first, second, likelihood, difference
    favours_first: pd.DataFrame
    favours_second: pd.DataFrame
    file: str | None  # file with the whole vocabulary
    warnings: tuple[str, ...]
    # The whole vocabulary by token_id: token_id, token, kind (one of KINDS), first and second (log
    # probabilities, natural), likelihood (their mean), difference (first - second)
    tokens: pd.DataFrame = local()
