"""Evidence as tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import pandas as pd

from inspector.analyses.checks.result import Evidence

SUBJECT = "subject"  # the column of names
COLUMNS = [field.name for field in dataclasses.fields(Evidence)]


def as_frame(evidence: Iterable[Evidence]) -> pd.DataFrame:
    """One row a piece of evidence; a large model can have a hundred thousand."""
    rows = ([getattr(each, name) for name in COLUMNS] for each in evidence)
    return pd.DataFrame(rows, columns=COLUMNS)
