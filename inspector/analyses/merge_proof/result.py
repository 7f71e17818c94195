"""What the numbers of three checkpoints prove about a merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd

# Of a checkpoint, and of each tensor that the adapter changes. "partly merged" is of a checkpoint alone.
VERDICTS = (
    "merged",
    "within rounding",
    "partly merged",
    "not merged",
    "merged more than once",
    "other alpha",
    "other base",
    "not checkable",
)
PROVEN = ("merged", "within rounding")
# Of single tensors besides: the adapter adds nothing to it, or does not name it.
NOTHING = "nothing to merge"
UNTARGETED = ("unchanged", "changed", "added", "dropped")
# How a merge rounds: P1 the sum alone; P2 the change first; P3 the adapter's numbers have 16 bits; P4 the sum is made
# in another dtype of 16 bits; P5 the base was quantized to NF4 before.
PROCEDURES = ("P1", "P2", "P3", "P4", "P5")


@dataclass(frozen=True, slots=True)
class MergeProof:
    """Whether the merged model is the base with the adapter's change, tensor by tensor."""

    name: str  # of the base
    adapter_name: str
    merged_name: str
    fingerprint: str
    adapter_fingerprint: str
    merged_fingerprint: str
    verdict: str  # one of VERDICTS
    procedure: str | None  # one of PROCEDURES that replays every change; None: there is none
    coefficient: float | None  # of the change in what was added, all targets as one vector; 1: the adapter once
    # One row a tensor, in the base's order: name, targeted, verdict, procedure and coefficient (None where there is
    # none), reason ("" where the verdict needs none), rows (compared), layer ("" outside of layers), kind (its name
    # within the layer)
    tensors: pd.DataFrame
    dropped: tuple[str, ...]  # of the base, or brought by the adapter, that the merged model lacks
    counts: dict[str, int]  # verdict -> tensors
    identical: bool  # every row that was compared is the base's
    rows: str  # compared of each matrix: "64" or "all"
    warnings: tuple[str, ...]
