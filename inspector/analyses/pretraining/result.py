"""The pre-training objective on one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Pretraining:
    """Labels and losses of the pre-training objective on one input."""

    architecture: str
    share: float  # share of the ordinary tokens that are chosen, 0..1
    seed: int
    # position, before_id, before, what (MASKED, REPLACED, KEPT or NOT_CHOSEN), after_id, after,
    # label (the id before, or IGNORED), loss (nats; NaN where ignored), probability (of the token
    # before; NaN where ignored), prediction (the most likely token there; "" where ignored)
    tokens: pd.DataFrame
    chosen: int
    counts: dict[str, int]  # MASKED, REPLACED, KEPT -> tokens
    masked_lm_loss: float  # mean over the chosen tokens, nats
    next_sentence_label: int | None  # 0: it follows; 1: it does not; None: no next-sentence label
    next_sentence_loss: float | None
    is_next: float | None  # probability
    loss: float  # loss that the model itself returns for these labels
    output: dict[str, tuple[int, ...]]
    device: str
    dtype: str
    warnings: tuple[str, ...]
