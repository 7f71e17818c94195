"""Evidence as tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import pandas as pd

from inspector.analyses.checks.result import Checks, Evidence, LoadingRow, MatrixNorms, TieRow
from inspector.text import shape_text

SUBJECT = "subject"  # the column of names
PATTERN = "pattern"  # likewise, of `norm_frame`
COLUMNS = [field.name for field in dataclasses.fields(Evidence)]


def as_frame(evidence: Iterable[Evidence]) -> pd.DataFrame:
    """One row a piece of evidence; a large model can have a hundred thousand."""
    rows = ([getattr(each, name) for name in COLUMNS] for each in evidence)
    return pd.DataFrame(rows, columns=COLUMNS)


def check_frame(checks: Checks) -> pd.DataFrame:
    """One row a check, the worst first."""
    return pd.DataFrame(
        {"check": check.name, "status": check.status, "severity": check.severity, "found": check.detail}
        for check in checks.worst_first()
    )


def norm_frame(norms: Iterable[MatrixNorms]) -> pd.DataFrame:
    """One row a pattern of names and shape (text)."""
    columns = [field.name for field in dataclasses.fields(MatrixNorms)]
    frame = pd.DataFrame([[getattr(each, name) for name in columns] for each in norms], columns=columns)
    return frame.assign(shape=[shape_text(shape) for shape in frame["shape"]])


def loading_frame(rows: Iterable[LoadingRow]) -> pd.DataFrame:
    """One row a pattern of names, the worst outcome first."""
    found = ([row.file_name or "–", row.class_name or "–", row.outcome, row.count] for row in rows)
    return pd.DataFrame(found, columns=["in the file", "in the class", "outcome", "tensors"])


def tie_frame(rows: Iterable[TieRow]) -> pd.DataFrame:
    """One row a loader."""
    ties = {True: "yes", False: "no", None: "–"}
    found = ([row.loader, row.level or "the top", ties[row.ties], row.held, row.outcome] for row in rows)
    return pd.DataFrame(found, columns=["loader", "reads", "ties", "in the files", "outcome"])
