"""Sentences about how far a map of the vocabulary can be trusted."""

from __future__ import annotations

from inspector.analyses.vocabulary_map.request import UMAP_LEARN
from inspector.analyses.vocabulary_map.result import Projection
from inspector.text import percent_text

READABLE = 0.1  # share of neighbors below which a map says nothing about who is near whom
SIDE_BY_SIDE = (
    "Both maps use the same number of neighbors, metric and seed. The inspector's own UMAP has a minimum distance of "
    "0 and a spread of 1. The time of umap-learn's first map on a machine includes compilation."
)
NOT_COLORED = "This map was not measured in this way, so it is colored by kind."


def made_by(projection: Projection) -> str:
    """The method, and whose it is if it is not ours."""
    return "umap-learn" if projection.implementation == UMAP_LEARN else projection.method.upper()


def headline(projection: Projection) -> str:
    """The map in a sentence."""
    return f"A map of {projection.rows:,} tokens by {made_by(projection)}: {kept(projection)}."


def kept(projection: Projection) -> str:
    """The share of true neighbors that the map keeps, in a few words."""
    return f"{percent_text(projection.kept_neighbours)} of the 15 true neighbors kept"


def trust(projection: Projection) -> str:
    """What the map can be read for."""
    advice = (
        "read clusters, not distances"
        if projection.kept_neighbours >= READABLE
        else "most neighbors are lost here, so use the list of neighbors, not the picture"
    )
    sampled = projection.judged_rows < projection.rows
    measured = f" (measured on {projection.judged_rows:,} random tokens; color by neighbor trust to measure all)"
    stays = projection.stability
    return (
        f"On this map {percent_text(projection.kept_neighbours)} of each token's 15 true neighbors are still "
        f"neighbors{measured if sampled else ''}: {advice}."
        + (
            ""
            if stays is None
            else f" Under another seed, {percent_text(stays)} of the neighbors on the map stay the same."
        )
    )


def approximate(recall: float) -> str:
    """What a map of neighbors that were searched approximately was made from."""
    return (
        "The vocabulary is large, so the search for the map's neighbors was approximate: it found only "
        f"{100 * recall:.0f} % of the true ones."
    )


def too_few(least: int, rows: int) -> str:
    """Why a PCA is shown instead."""
    return f"UMAP needs more than {least} tokens, but there are {rows}, so this is a PCA."
