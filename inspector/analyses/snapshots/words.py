"""Sentences about a training run."""

from __future__ import annotations

from inspector.analyses.snapshots.frames import Series
from inspector.analyses.snapshots.result import Vitals
from inspector.text import plural

MEASURES = {
    "padding": "length of the row",
    "norms": "length of the row",
    "drift": "cosine",
    "neighbours": "share of neighbors kept",
}
READS = {
    "padding": "With padding_idx the look-up gives the row no gradient; a tied output layer does, at every predicted "
    "position. So it grows like the others, or faster.",
    "norms": "Rows grow as they are trained. A shortest row that lags behind belongs to a token that is rarely "
    "trained.",
    "drift": "A cosine of 1 means the same direction as in the reference; 0 means an orthogonal one. Rows from "
    "another vocabulary or width are not compared. Neither is a row that is zero in the reference, such as a padding "
    "row before training: compare it with the last snapshot.",
    "neighbours": "1 means that the same rows are nearest, in any order. The random rows are the same in every "
    "snapshot. A row that is zero in the reference, such as a padding row before training, has no neighbors there.",
    "ties": "Names are compared in memory after loading, and in the file. Point at a square to see the reason.",
    "checks": "Point at a square to see the finding; the Checks page has the evidence.",
}

NO_DATA = "No snapshot has data for this view: no padding row, no special tokens, or no names that share memory."


SEVERAL = "Name several checkpoints, or a folder of snapshots, to follow these numbers. --json prints the vectors."


def headline(vitals: Vitals) -> str:
    """The snapshot in a sentence."""
    padding = "" if vitals.pad_norm is None else f"; the padding row has norm {vitals.pad_norm:.3f}"
    return f"The {vitals.rows:,} embedding rows have a median norm of {vitals.norms.median:.3f}{padding}."


def stopped(answered: int) -> str:
    """How far a run came that was stopped."""
    return f"Stopped after results for {plural(answered, 'snapshot')}."


def gap(missing: int) -> str:
    """Why the figure has a gap."""
    return f"No result for {plural(missing, 'snapshot')}, so the figure has a gap."


def figure_title(quantity: str, run: str, series: Series | None) -> str:
    """The figure's title, with the run's name."""
    about = {
        "padding": "Length of the padding row",
        "norms": "Lengths of the embedding rows",
        "drift": f"Drift of tokens from {series.reference if series else ''}",
        "neighbours": f"Share of neighbors kept from {series.reference if series else ''}",
        "ties": "Names that share memory",
        "checks": "Result of each check",
    }
    return f"{about[quantity]}, {run}"
