"""Effect of each step of the head on the tokens of one hidden state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Climb:
    """Effect of each step of the head on the tokens of one hidden state."""

    layer: int
    position: int
    token: str  # the token at that position
    rungs: tuple[str, ...]  # in their order: cosine, then dot, then the others
    hidden_norm: float  # of the hidden state
    # One row a token and rung: token, token_id, rung, rank, score, probability, step (what leads
    # here from the step before, in words), change (ranks gained, positive is up; 0 at the first)
    ranks: pd.DataFrame
    # One row a token: token, token_id, norm (of its input embedding), cosine, dot, bias (NaN where
    # there is none), logit and probability (NaN without a head), pinned (bool)
    geometry: pd.DataFrame
    warnings: tuple[str, ...]
    layers: tuple[str, ...] = local()
    rung_notes: dict[str, str] = local()
