"""Sentences about a training run."""

from __future__ import annotations

from inspector.analyses.snapshots.frames import Series

MEASURES = {
    "padding": "length of the row",
    "norms": "length of the row",
    "drift": "cosine",
    "neighbours": "share of neighbors kept",
}
READS = {
    "padding": "With padding_idx the look-up gives the row no gradient; a tied output layer does, "
    "at every predicted position. So it grows with the others, or more.",
    "norms": "Rows grow while they are learned. A shortest row that stays behind belongs to a "
    "token that is hardly ever trained.",
    "drift": "A cosine of 1 is the direction of the reference; 0 is none of it. Rows of another "
    "vocabulary or width are not compared, nor is one that is zero in the reference, as a padding "
    "row is before training: measure it against the last snapshot.",
    "neighbours": "1 means that the same rows are nearest, in any order. Rows drawn at random are "
    "the same ones in every snapshot. A row that is zero in the reference, as a padding row is "
    "before training, has no neighbors there.",
    "ties": "Each name is compared in memory after loading, and with what the file holds. "
    "Point at a square for the reason.",
    "checks": "Point at a square for the finding; the page Checks has the evidence.",
}


def figure_title(quantity: str, run: str, series: Series | None) -> str:
    """The figure's title, with the run's name."""
    about = {
        "padding": "Length of the padding row",
        "norms": "Lengths of the embedding rows",
        "drift": f"Drift of tokens, against {series.reference if series else ''}",
        "neighbours": f"Neighbors kept, of those in {series.reference if series else ''}",
        "ties": "Names that share memory",
        "checks": "Result of each check",
    }
    return f"{about[quantity]}, {run}"
