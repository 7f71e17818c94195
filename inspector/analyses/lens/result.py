"""Hidden states, read as tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class LensRows:
    """The rows of a lens that are known during a streamed pass; the lens has the same numbers."""

    tokens: tuple[str, ...]  # as the lens'
    layers: tuple[str, ...]  # as the lens': of those to come as well
    rungs: tuple[str, ...]  # steps that need no head: what the head's lead to is compared when the pass has ended
    # layer, position, rung, rank, token, token_id, score, probability: of the layers so far, the best token alone
    cells: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Lens:
    """Each layer's hidden state, read as tokens at every step of the head."""

    tokens: tuple[str, ...]  # positions; of the decoder where there are two stacks
    rungs: tuple[str, ...]  # first to last: "dot", "cosine", ..., "logits" where there is a head
    # layer (0 = embeddings), position, rung, rank (0 = most likely), token, token_id, score,
    # probability (softmax over the whole vocabulary; NaN for cosine)
    cells: pd.DataFrame
    max_abs_error: float | None  # last rung, last layer, compared with the model's own logits
    warnings: tuple[str, ...]
    # layer, position, rung, token, token_id, rank (0 = most likely), score, probability: of the
    # tokens that were pinned
    pinned: pd.DataFrame
    # Largest difference from the model's own logits that rounding in the dtype explains; None
    # where there are none.
    tolerance: float | None
    # Whether the logits are the model's own output, because the steps that are known here lead to
    # others; they are then shown at the last layer alone.
    taken_from_model: bool
    rung_notes: dict[str, str] = local()  # rung -> one sentence on what it computes
    # layer, position, rung, entropy (nats; NaN for cosine), and where there is a head: overlap
    # (share of the top k that the logits of the same state have too), correlation (Spearman's,
    # over the logits' 100 most likely tokens), agrees (1 if the top token is that of the logits at
    # the last layer, else 0)
    states: pd.DataFrame = local()
    layers: tuple[str, ...] = local()  # label of each layer: "embeddings", "1", ..., "12"
    device: str = local(default="cpu")
    dtype: str = local(default="float32")
    milliseconds: float = local(default=0.0)
    left_out: tuple[str, ...] = local(default=())  # why steps that others have are missing here
