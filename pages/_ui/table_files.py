"""Tables as files: CSV for everybody, Parquet for who computes on, Markdown and LaTeX to be copied into a text."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from hashlib import blake2s

import pandas as pd
import streamlit as st

from inspector.report.labeling import csv_metadata
from inspector.report.latex import table_latex
from inspector.report.markdown import table_markdown
from inspector.text import as_csv, escaped, literal
from pages._ui import provenance

COPIED = 100  # rows that a text can bear
ASKED = ("Fingerprint", "Page")  # files of the same name come from the same answer

Facts = Mapping[str, str]


def offer(frame: pd.DataFrame, *, name: str, label: str = "") -> None:
    """Offer a frame as CSV and as Parquet, and to be copied; a file is written only when somebody wants it.

    Args:
        frame: What the files hold; rows and columns as they are.
        name: Of the files, without ending.
        label: What is in them, where the page shows several tables.
    """
    before = f"{label}: " if label else ""
    facts = provenance.of_page()
    asked = json.dumps([facts[each] for each in ASKED]).encode()
    named = f"{name}-{blake2s(asked, digest_size=4).hexdigest()}"
    with st.container(horizontal=True, width="content", gap="xsmall", wrap=False):
        for ending, write, mime in (
            ("CSV", lambda: as_csv(frame).encode(), "text/csv"),
            ("Parquet", lambda: as_parquet(frame, facts), "application/vnd.apache.parquet"),
        ):
            st.download_button(
                f"{before}{ending}",
                data=write,
                file_name=f"{named}.{ending.lower()}",
                mime=mime,
                key=f"{ending} {name}",
                icon=":material/download:",
                on_click="ignore",
            )
        _offer_copies(frame, facts, name=name, file=f"{named}.csv")


@st.fragment
def _offer_copies(frame: pd.DataFrame, facts: Facts, *, name: str, file: str) -> None:
    """Offer the table as text, and what describes its CSV."""
    menu = st.popover("Copy", key=f"copy {name}", icon=":material/content_copy:", on_change="rerun", wrap=False)
    if not menu.open:
        return
    with menu:
        if len(frame) > COPIED:
            st.caption(f"The first {COPIED} of {len(frame):,} rows; the files have all.")
        st.markdown("**Markdown**")
        st.code(as_markdown(frame, facts), language="markdown", height="content" if len(frame) < 8 else 200)
        st.markdown("**LaTeX**, for the package booktabs")
        st.code(as_latex(frame, facts), language="latex", height="content" if len(frame) < 8 else 200)
        st.download_button(
            "Description of the CSV file (CSVW)",
            data=lambda: csv_metadata(file, frame, facts, title=facts["Checkpoint"]).encode(),
            file_name=f"{file}-metadata.json",
            mime="application/csvm+json",
            key=f"CSVW {name}",
            icon=":material/download:",
            on_click="ignore",
        )


def as_markdown(frame: pd.DataFrame, facts: Facts) -> str:
    """The first rows as Markdown, with where they come from."""
    return f"{table_markdown(frame.head(COPIED))}\n\n{literal(_source(facts))}"


def as_latex(frame: pd.DataFrame, facts: Facts) -> str:
    """The first rows as LaTeX, with where they come from as comments."""
    said = "\n".join(f"% {name}: {escaped(value)}" for name, value in facts.items())
    return f"{said}\n{table_latex(frame.head(COPIED))}"


def _source(facts: Facts) -> str:
    kept = ("Checkpoint", "Fingerprint", "Text", "Page", "Checkpoint Inspector")
    return "; ".join(f"{name}: {facts[name]}" for name in kept if name in facts)


def as_parquet(frame: pd.DataFrame, facts: Facts) -> bytes:
    """The table with its provenance in the file's schema, where pandas finds it as `attrs`."""
    labeled = frame.copy(deep=False)
    labeled.attrs.update(facts)
    buffer = io.BytesIO()
    labeled.to_parquet(buffer, index=False)
    return buffer.getvalue()
