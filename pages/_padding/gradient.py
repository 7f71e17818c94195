"""The gradient that reaches the padding row, by path and by experiment."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.padding import words
from inspector.analyses.padding.figures import gradient_bars
from inspector.analyses.padding.result import Padding, PaddingRow
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._ui import parts, session, table_files
from pages._ui.words import listed


def draw(checkpoint: Opened, result: Padding, row: PaddingRow) -> None:
    """Draw the gradients as bars, or say why there are none."""
    if row.gradient is None or row.experiments is None:
        st.info(literal(result.gradient_note), icon=":material/info:")
        return
    bars = gradient_bars(row.experiments, row=f"{row.token} of {checkpoint.name}", theme=session.theme())
    parts.chart(bars, alt="Gradient by path, as bars; the tab Experiments lists the same numbers")
    st.caption(literal(result.gradient_note))


def explain(row: PaddingRow) -> None:
    """Say what each path does, and why the row moves at all."""
    if row.gradient is not None:
        st.markdown(listed(words.explain_gradient(row, row.gradient)))
    st.markdown(f"**Is it because the model may predict padding?**\n\n{literal(words.MECHANISM)}")


def list_experiments(checkpoint: Opened, result: Padding, row: PaddingRow) -> None:
    """List the gradients of every experiment, and what the model read."""
    if row.gradient is None or row.experiments is None:
        st.info(literal(result.gradient_note), icon=":material/info:")
        return
    shown = row.experiments.rename(columns={"input_path": "through look-up", "output_path": "through softmax"})
    for name in ("row_norm", "through look-up", "through softmax", "total"):  # no rounding turns these into zero
        shown[name] = shown[name].map(words.number)
    parts.table(shown.rename(columns={"total": "both"}), alt="Gradients in every experiment")
    table_files.offer(row.experiments, name=f"{checkpoint.name}-padding-gradient")
    with st.expander("Model input"):
        st.code("\n".join(result.masked_text), language=None, wrap_lines=True)
        st.caption(literal(words.conditions(result, row.gradient)))
