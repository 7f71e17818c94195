"""What a page offers as a file says where it comes from, as other programs read it."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
import streamlit as st
from markdown_it import MarkdownIt
from streamlit.testing.v1 import AppTest

import inspector
from pages._ui import provenance, table_files

Open = Callable[..., AppTest]
KING, QUEEN = "the king of [MASK].", "the queen of [MASK]."
FRAME = pd.DataFrame({"to|ken": ["<b>x_1", "50 %"], "token_id": [1, 2]})


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> tuple[list[dict[str, str]], list[str]]:
    """What a page's figures and tables say of themselves, and the names of its tables' files."""
    facts, names = [], []
    of_page = provenance.of_page
    download: Callable[..., bool] = st.download_button

    def tell() -> dict[str, str]:
        facts.append(of_page())
        return facts[-1]

    def note(*labels: str, **options: Any) -> bool:
        names.append(options["file_name"])
        return download(*labels, **options)

    monkeypatch.setattr(provenance, "of_page", tell)
    monkeypatch.setattr(st, "download_button", note)
    return facts, names


def test_a_figure_says_what_was_asked_and_tables_of_other_questions_have_other_names(
    open_app: Open, offered: tuple[list[dict[str, str]], list[str]]
) -> None:
    figures, names = offered
    open_app("lens", checkpoint="demo-bert", text=KING, layer="2", tab="Ranks by step")
    facts, before = figures[-1], {*names}
    opened = inspector.open("demo-bert").opened
    assert (facts["Checkpoint"], facts["Fingerprint"], facts["Text"]) == ("demo-bert", opened.fingerprint, KING)
    assert f"python -m inspector lens demo-bert '--text={KING}'; python -m inspector ladder" in facts["Command"]
    assert facts["Page"].startswith("/lens?checkpoint=demo-bert&layer=2&")
    assert "&text=the+king+of+%5BMASK%5D." in facts["Page"]
    assert facts["Checkpoint Inspector"] == inspector.__version__
    assert "Libraries" not in facts  # which a server does not tell
    assert len(before) >= 2
    names.clear()
    open_app("lens", checkpoint="demo-bert", text=QUEEN, layer="2")
    assert names
    assert before.isdisjoint(names)


def test_a_second_checkpoint_is_named(open_app: Open, offered: tuple[list[dict[str, str]], list[str]]) -> None:
    figures, _ = offered
    open_app("compare", checkpoint="demo-bert", other="demo-gpt2", view="Two checkpoints")
    assert figures[-1]["Compared with"] == f"demo-gpt2, {inspector.open('demo-gpt2').opened.fingerprint}"
    assert "python -m inspector compare demo-bert demo-gpt2" in figures[-1]["Command"]


def test_a_parquet_file_has_its_provenance_in_its_schema() -> None:
    facts = {"Checkpoint": "demo-bert", "Text": "ein „Wort“ 👋"}
    data = table_files.as_parquet(FRAME, facts)
    (said,) = (json.loads(value) for name, value in pq.read_schema(io.BytesIO(data)).metadata.items()
               if name == b"PANDAS_ATTRS")  # fmt: skip
    assert said == facts
    read = pd.read_parquet(io.BytesIO(data))
    assert read.attrs == facts
    pd.testing.assert_frame_equal(read, FRAME)
    assert FRAME.attrs == {}


def test_a_table_is_copied_as_markdown_and_as_latex() -> None:
    facts = {"Checkpoint": "a_b", "Fingerprint": "64eb", "Page": "/lens?text=%5BMASK%5D"}
    tokens = MarkdownIt().enable("table").parse(table_files.as_markdown(FRAME, facts))
    cells = [
        inline.children[0].content if inline.children and len(inline.children) == 1 else ""
        for kind, inline in itertools.pairwise(tokens)
        if kind.type in {"th_open", "td_open"}
    ]
    assert cells == ["to|ken", "id", "<b>x_1", "1", "50 %", "2"]
    assert tokens[-2].children is not None
    shown = "".join(each.content for each in tokens[-2].children)
    assert shown == "Checkpoint: a_b; Fingerprint: 64eb; Page: /lens?text=%5BMASK%5D"

    lines = table_files.as_latex(FRAME, facts).splitlines()
    assert lines[:4] == [
        "% Checkpoint: a_b",
        "% Fingerprint: 64eb",
        "% Page: /lens?text=%5BMASK%5D",
        r"\begin{tabular}{lr}",
    ]
    assert r"<b>x\_1 & 1 \\" in lines
    assert r"50 \% & 2 \\" in lines
    assert lines[-1] == r"\end{tabular}"
