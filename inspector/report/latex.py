"""Write a table as LaTeX, for a paper."""

from __future__ import annotations

import pandas as pd

from inspector.text import visible
from inspector.view.cells import cell_text, column_label, is_amount


def table_latex(frame: pd.DataFrame) -> str:
    """Write a table for the package booktabs; text of strangers is escaped."""
    rows = frame.to_dict("records")
    right = [bool(rows) and is_amount(rows[0][name]) for name in frame.columns]
    cells = [[visible(cell_text(value, str(name))) for name, value in row.items()] for row in rows]
    shown = pd.DataFrame(cells, columns=[visible(column_label(name)) for name in frame.columns], dtype=object)
    return shown.to_latex(index=False, escape=True, column_format="".join("r" if each else "l" for each in right))
