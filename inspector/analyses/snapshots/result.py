"""Numbers that are quick to read from a checkpoint, for following them over training steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.analyses.embeddings.result import RowNorms

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import numpy as np
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Vitals:
    """Numbers of a checkpoint's input embedding matrix that can be compared with other checkpoints.

    Of two checkpoints with the same `vocabulary`, row 37 stands for the same token in both.
    """

    name: str
    fingerprint: str
    tensor: str  # name of the matrix
    rows: int
    columns: int
    vocabulary: str  # digest of what each row stands for, in order
    norms: RowNorms
    pad_token: str | None
    pad_id: int | None
    pad_norm: float | None
    tokens: pd.DataFrame  # the requested ones: token, token_id, norm
    vectors: np.ndarray  # (tokens, columns), float32: their rows
    k: int  # number of neighbors
    probes: np.ndarray  # row numbers: the tokens', then some drawn at random
    neighbours: np.ndarray  # (probes, k): the nearest rows of each by cosine, -1 where there is none
    warnings: tuple[str, ...]
