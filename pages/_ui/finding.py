"""A long table of names: the field that finds some, the rows that match, and these as files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from inspector.names import NAME
from pages._ui import parts, table_files


def field(label: str, *, placeholder: str) -> str:
    """Ask which rows are wanted."""
    return st.text_input(
        label,
        type="search",
        live=True,
        key="find",
        bind="query-params",
        icon=":material/search:",
        placeholder=placeholder,
    )


def listed(
    matching: pd.DataFrame,
    what: str,
    *,
    of: str,
    name: str,
    alt: str,
    by: str = NAME,
    columns: Mapping[str, Any] | None = None,
    height: int = 360,
) -> None:
    """Show the rows that match.

    Args:
        what: A row of the table, such as "tensor".
        of: How many rows there are, and in which order.
        name: Of the files, without ending.
        alt: What the table shows, in words.
        by: The column of names.
        columns: How some of its columns are shown.
    """
    if matching.empty:
        st.info(f"No {what} matches: clear the search field, or try part of a name.")
    else:
        parts.table(matching, height=height, find="find", by=by, columns=columns, alt=alt)
    with st.container(horizontal=True, vertical_alignment="center"):
        table_files.offer(matching, name=name)
        st.caption(f"{len(matching):,} of {of}")
