"""What the heads answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Mask:
    """One mask and its likeliest tokens."""

    position: int
    predictions: pd.DataFrame  # token, token_id, probability, logit; likeliest first


@dataclass(frozen=True, slots=True)
class Joint:
    """One way to fill all masks together."""

    tokens: tuple[str, ...]  # one for each mask, in order
    log_probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the masked-LM head answers."""

    device: str  # "cpu", "cuda:0", "mps"
    dtype: str
    milliseconds: float  # one forward pass, the model already loaded
    tokens: tuple[str, ...]
    masks: tuple[Mask, ...]
    joint: tuple[Joint, ...]
    warnings: tuple[str, ...]
