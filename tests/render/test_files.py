"""Tables that commands write to files."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd

from inspector.render.files import write_frame


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path):
    """A spreadsheet computes what begins so, which may send the other cells elsewhere."""
    formulas = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\n=1"]
    frame = pd.DataFrame(
        {
            "=token": [*formulas, "a\r=1"],
            "score": np.arange(-4.0, 3.0),
            "rank": pd.array([None, *range(-3, 3)], dtype="Int64"),
            "kind": pd.Categorical([*formulas, "a\r=1"]),
            "object": pd.Series([*formulas, None], dtype="object"),
        }
    )
    write_frame(frame, tmp_path / "frame.csv", (tmp_path / "frame.csv").open("wb"))
    with (tmp_path / "frame.csv").open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    assert names == ["'=token", "score", "rank", "kind", "object"]
    assert [row[0] for row in rows] == [*(f"'{cell}" for cell in formulas), r"a\x0d=1"]
    assert [row[1] for row in rows] == [str(number) for number in np.arange(-4.0, 3.0)]
    assert [row[2] for row in rows] == ["", *map(str, range(-3, 3))]
    assert [row[3] for row in rows] == [row[0] for row in rows]
    assert [row[4] for row in rows] == [*(f"'{cell}" for cell in formulas), ""]
    write_frame(frame, tmp_path / "frame.parquet", (tmp_path / "frame.parquet").open("wb"))
    assert list(pd.read_parquet(tmp_path / "frame.parquet")["=token"]) == [*formulas, "a\r=1"]
