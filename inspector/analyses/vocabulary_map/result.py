"""A map of the vocabulary, and measures of how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Projection:
    """A map of the vocabulary."""

    method: str  # "pca" or "umap"
    dimensions: int  # 2 or 3
    rows: int  # points on the map
    seconds: float  # time to compute it, now or when it was cached
    kept_neighbours: float  # share of the true 15 nearest neighbors kept in the map, 0..1
    file: str | None
    warnings: tuple[str, ...]
    # token_id (int32), token (str), x, y[, z] (float32), norm (float32), kind (one of KINDS),
    # trust (float32, 0..1): share of the row's true 15 nearest neighbors kept, NaN: not judged;
    # and where it was asked for, stability (float32, 0..1): share of its 15 nearest on the map
    # that stay under another seed
    points: pd.DataFrame = local()
    explained: tuple[float, ...] = local(default=())  # PCA: share of variance an axis, 0..1
    metric: str = "cosine"  # of the true neighbors
    judged_rows: int = 0  # rows that kept_neighbours is the mean of
    neighbour_recall: float = 1.0  # share of true neighbors that the map was made from, 0..1
    stability: float | None = None  # mean of the column; None: not asked for, or a PCA
    cached: bool = False  # found on the disk
    implementation: str | None = None  # of a UMAP: "inspector" or "umap-learn"

    @property
    def table(self) -> pd.DataFrame:
        """What a data frame of the map holds: its points."""
        return self.points
