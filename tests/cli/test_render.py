"""Results as people see them on a terminal."""

from __future__ import annotations

import csv
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from inspector.render import write_frame, write_table

GROUP = {
    "names": ["bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"],
    "verdict": "tied", "shape": [5120, 160], "nbytes": 3276800, "declared": True,
    "in_file": ["bert.embeddings.word_embeddings.weight"],
    "reason": "2 names, one block of memory.", "listed_parameters": 1638400,
}  # fmt: skip


def printed(plain, *, width: int = 80) -> str:
    output = StringIO()
    write_table(plain, Console(file=output, width=width, highlight=False))
    return output.getvalue()


def test_an_answer_that_is_one_table_alone():
    text = printed({"result": {"tokens": [{"position": 0, "token": "dog"}]}})
    assert "result: tokens" in text.lower()
    assert "dog" in text
    assert printed({"heads": {}}) == ""


@pytest.mark.parametrize("width", [100, 80])
def test_a_row_too_wide_for_the_terminal_is_a_block_of_lines(width):
    text = printed({"groups": [GROUP, GROUP | {"verdict": "diverged"}]}, width=width)
    assert "…" not in text
    assert text.count("bert.embeddings.word_embeddings.weight") == 4
    assert "in file" in text
    lines = [line for line in text.splitlines() if line.strip().startswith("verdict")]
    assert [line.split()[-1] for line in lines] == ["tied", "diverged"]
    assert max(map(len, text.splitlines())) <= width


def test_names_in_a_label_stay_as_they_are():
    row = {"name": "lm_head.weight", "members": [{"file_name": "a"}]}
    assert "lm head" not in printed({"shared_groups": [row]})
    assert "Shared groups" in printed({"shared_groups": [row]})


def test_a_list_that_is_longer_than_a_line_is_one_line_an_item():
    assert printed({"rungs": ["dot", "cosine"]}) == "Rungs: dot, cosine\n"
    long = [f"model.layers.{number}.mlp.experts.gate_proj.weight · {'x' * 60}" for number in range(3)]
    assert printed({"tensors": long}).splitlines() == ["Tensors", *(f"  {item}" for item in long)]


def test_a_column_whose_first_value_is_missing_is_still_one_of_numbers():
    lines = printed({"rows": [{"token": "a", "rank": None}, {"token": "b", "rank": 12_345}]}).splitlines()
    assert [line for line in lines if "–" in line] == ["│ a     │      – │"]


def test_a_table_that_fits_stays_one():
    text = printed({"rows": [{"name": "a", "count": 1}, {"name": "b", "count": 2}]})
    assert "┃" in text


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
