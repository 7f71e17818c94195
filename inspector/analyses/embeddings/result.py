"""What the static embedding matrix holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.health import Health
from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Norms:
    """Lengths of the embedding rows, those with NaN or infinity left out."""

    min: float
    median: float
    max: float


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The static input embedding matrix, (vocab, d_model)."""

    rows: int
    columns: int
    norms: Norms
    special: pd.DataFrame  # token, token_id, norm
    # token, token_id, score, percentile, norm, bias (where a head has one), why; most suspicious
    # first, and only what health.indicator lists
    undertrained: pd.DataFrame
    neighbours: pd.DataFrame  # token, token_id, similarity; empty when no token was asked for
    warnings: tuple[str, ...]
    health: Health
    query: str | None = local(default=None)  # the visible form of the token that was asked for
    query_id: int | None = local(default=None)
    metric: str = local(default="cosine")  # "cosine", "dot" or "euclidean" (then a distance)
    tensor: str = local(default="")  # name of the matrix in the file
    pad_token: str | None = local(default=None)
    pad_id: int | None = local(default=None)
    pad_norm: float | None = local(default=None)
    pad_percentile: float | None = local(default=None)  # share of rows with a smaller norm, 0..100


# kinds of token, in drawing order (later ones on top)
KINDS = ("word", "subword", "byte", "no token", "unused", "special", "padding")


@dataclass(frozen=True, slots=True)
class Projection:
    """A map of the vocabulary."""

    method: str  # "pca" or "umap"
    dimensions: int  # 2 or 3
    rows: int  # points on the map
    seconds: float  # that it took to compute, now or when it was kept on the disk
    kept_neighbours: float  # share of the true 15 nearest neighbours kept in the map, 0..1
    file: str | None
    warnings: tuple[str, ...]
    # token_id (int32), token (str), x, y[, z] (float32), norm (float32), kind (one of KINDS),
    # trust (float32, 0..1): share of the row's true 15 nearest neighbours kept, NaN: not judged;
    # and where it was asked for, stability (float32, 0..1): share of its 15 nearest on the map
    # that stay under another seed
    points: pd.DataFrame = local()
    explained: tuple[float, ...] = local(default=())  # PCA: share of variance an axis, 0..1
    metric: str = "cosine"  # of the true neighbours
    judged_rows: int = 0  # rows that kept_neighbours is the mean of
    neighbour_recall: float = 1.0  # share of true neighbours that the map was made from, 0..1
    stability: float | None = None  # mean of the column; None: not asked for, or a PCA
    cached: bool = False  # found on the disk
