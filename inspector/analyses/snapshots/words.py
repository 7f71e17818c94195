"""Sentences about a training run."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from inspector.analyses.snapshots.frames import Series
from inspector.analyses.snapshots.result import Vitals
from inspector.text import plural, shorten_middle, some

NAMED = 4  # lines, or rows that change, in a headline
LABEL = 44  # characters of a name there
WHY = "What does it show?"

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


def ends(lines: pd.DataFrame, measure: str) -> str:
    """Where each line of `Series.lines` begins and ends."""
    rows = lines.to_dict("records")
    first, last = ([row for row in rows if row["place"] == rows[end]["place"]] for end in (0, -1))
    begun = {row["line"]: row["value"] for row in first if pd.notna(row["value"])}
    both = [row for row in last if row["line"] in begun and pd.notna(row["value"])]
    said = [f"{row['line']} {begun[row['line']]:.3g} → {row['value']:.3g}" for row in both]
    names = f"from {first[0]['snapshot']} to {last[0]['snapshot']}"
    return f"{measure.capitalize()} {names}: {some(said, NAMED) or 'no line has a number in both'}."


def turns(cells: pd.DataFrame, what: str) -> str:
    """Which rows of verdicts change, and where first.

    Args:
        cells: As for `verdict_grid`, in the order of the run.
        what: A row.
    """
    first: dict[str, str] = {}
    said: dict[str, str] = {}
    for cell in cells.to_dict("records"):
        row, verdict = cell["row"], cell["verdict"]
        before = first.setdefault(row, verdict)
        if verdict != before and row not in said:
            said[row] = f"{shorten_middle(row, LABEL)} from {before} to {verdict} at {cell['snapshot']}"
    through, rows = plural(len(set(cells["place"])), "snapshot"), plural(len(first), what)
    if said:
        return f"{len(said)} of {rows} change over {through}: {some([*said.values()], NAMED)}."
    same = ", ".join(f"{count} {verdict}" for verdict, count in Counter(first.values()).items())
    return f"Nothing changes over {through}: {same} of {rows}."


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
