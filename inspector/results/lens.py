"""What hidden states say in tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Lens:
    """What each layer's hidden state says in tokens, at every rung of the head's ladder."""

    tokens: tuple[str, ...]  # positions
    rungs: tuple[str, ...]  # first to last: "dot", "cosine", ..., "logits" where there is a head
    # layer (0 = embeddings), position, rung, rank (0 = likeliest), token, token_id, score,
    # probability (softmax over the whole vocabulary; NaN for cosine)
    cells: pd.DataFrame
    max_abs_error: float | None  # last rung, last layer, against the model's own logits
    warnings: tuple[str, ...]
    rung_notes: dict[str, str] = local()  # rung -> one sentence on what it computes
    layers: tuple[str, ...] = local()  # label of each layer: "embeddings", "1", ..., "12"
    tolerance: float | None = local(default=None)  # largest error that the dtype explains
    device: str = local(default="cpu")
    dtype: str = local(default="float32")
    milliseconds: float = local(default=0.0)
