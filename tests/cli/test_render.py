"""Results as people see them on a terminal."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from inspector.render import write_table

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


def test_a_table_that_fits_stays_one():
    text = printed({"rows": [{"name": "a", "count": 1}, {"name": "b", "count": 2}]})
    assert "┃" in text
