"""Contents of the static embedding matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.analyses.embeddings.result_health import Health
from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class RowNorms:
    """Lengths of the embedding rows, without rows that hold NaN or infinity."""

    min: float
    median: float
    max: float


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The static input embedding matrix, (vocab, d_model)."""

    rows: int
    columns: int
    norms: RowNorms
    special: pd.DataFrame  # token, token_id, norm
    # token, token_id, score, percentile, norm, bias (where a head has one), why; most suspicious
    # first, and only what health.indicator lists
    undertrained: pd.DataFrame
    neighbours: pd.DataFrame  # token, token_id, similarity; empty if no token was requested
    warnings: tuple[str, ...]
    health: Health
    query: str | None = local(default=None)  # visible form of the requested token
    query_id: int | None = local(default=None)
    metric: str = local(default="cosine")  # "cosine", "dot" or "euclidean" (then a distance)
    tensor: str = ""  # name of the matrix in the file
    pad_token: str | None = local(default=None)
    pad_id: int | None = local(default=None)
    pad_norm: float | None = local(default=None)
    pad_percentile: float | None = local(default=None)  # share of rows with a smaller norm, 0..100

    @property
    def table(self) -> pd.DataFrame:
        """The rows nearest to the requested token, or else the special tokens."""
        return self.special if self.query is None else self.neighbours


# kinds of token, in drawing order (later ones on top)
KINDS = ("word", "subword", "byte", "no token", "unused", "special", "padding")
