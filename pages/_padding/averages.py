"""What padding does to an average over positions."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.padding import words
from inspector.analyses.padding.result import Padding
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._ui import parts, table_files


def draw(checkpoint: Opened, result: Padding) -> None:
    """List each sentence's mean hidden state with and without the attention mask."""
    st.markdown(literal(words.AVERAGES))
    st.caption(literal(result.averaging_note))
    if result.averaging.empty:
        return
    parts.table(
        result.averaging.rename(columns={"padding_norm": "norm of padding"}),
        alt="Mean hidden state with and without the attention mask",
    )
    st.caption(literal(words.MEASURES))
    table_files.offer(result.averaging, name=f"{checkpoint.name}-padding-averaging")
