"""Predictions of the masked-LM head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Mask:
    """One mask and its most likely tokens, every other mask left open."""

    position: int
    predictions: pd.DataFrame  # token, token_id, probability, logit; most likely first
    # The targets, most likely first: word (as asked for), tokens (its pieces), pieces, and natural
    # log_probability and probability of the chain of its pieces, left to right. A word of n pieces
    # stands in n masks, so words of different n were asked for under different widths. None: no
    # targets.
    words: pd.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Joint:
    """One way to fill all masks together; log probabilities are natural ones, sums over masks."""

    tokens: tuple[str, ...]  # one for each mask, in order
    log_probability: float  # each given those already filled, with the later masks still open
    independent: float  # each with all other masks open
    pseudo_log_likelihood: float  # each with all others filled


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predictions of the masked-LM head."""

    device: str  # "cpu", "cuda:0", "mps"
    dtype: str
    milliseconds: float  # the forward pass with all texts in it, after the model is loaded
    tokens: tuple[str, ...]  # as read, masks in place
    masks: tuple[Mask, ...]
    joint: tuple[Joint, ...]  # most likely first; empty if there are too many masks to search
    warnings: tuple[str, ...]
    text: str  # what was read, masks in place
    token_ids: tuple[int, ...]  # of tokens
    special: tuple[bool, ...]  # which tokens are special, so they cannot be masked
    threads: int  # CPU threads
    memory_nbytes: int  # the weights on the device; on CUDA, the peak use during the run
    note: str  # how it ran, in one line
    batch: int  # requests that ran together, including this one

    @property
    def table(self) -> pd.DataFrame:
        """The predictions of all masks: position, rank (0 = most likely), token, token_id, probability, logit."""
        import pandas as pd

        frames = [
            mask.predictions.assign(position=mask.position, rank=range(len(mask.predictions))) for mask in self.masks
        ]
        whole = pd.concat(frames, ignore_index=True)
        return whole.reindex(columns=["position", "rank", *whole.columns.drop(["position", "rank"])])
