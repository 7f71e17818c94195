"""Tables as files: CSV for everybody, Parquet for who computes on."""

from __future__ import annotations

import io

import pandas as pd
import streamlit as st

from inspector.text import as_csv


def offer(frame: pd.DataFrame, *, name: str, label: str = "") -> None:
    """Offer a frame as CSV and as Parquet; a file is written only when somebody wants it.

    Args:
        frame: What the files hold; rows and columns as they are.
        name: Of the files, without ending.
        label: What is in them, where the page shows several tables.
    """
    before = f"{label}: " if label else ""
    with st.container(horizontal=True, width="content", gap="small"):
        for ending, write, mime in (
            ("CSV", _csv, "text/csv"),
            ("Parquet", as_parquet, "application/vnd.apache.parquet"),
        ):
            st.download_button(
                f"{before}{ending}",
                data=lambda write=write: write(frame),
                file_name=f"{name}.{ending.lower()}",
                mime=mime,
                key=f"{ending} {name}",
                icon=":material/download:",
                on_click="ignore",
            )


def _csv(frame: pd.DataFrame) -> bytes:
    return as_csv(frame).encode()


def as_parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()
