"""The padding vector: its length, and where it lies among the other rows."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.padding import words
from inspector.analyses.padding.result import Padding
from inspector.text import literal
from pages._ui import parts, table_files


def draw_early(result: Padding) -> None:
    """Draw what the rows alone tell, while the model runs."""
    if result.row is not None:
        st.caption(literal(words.SO_FAR))
        draw(result)


def draw(result: Padding, *, name: str = "") -> None:
    """Draw the row that is shown, if there is one.

    Args:
        name: Of the file of its neighbors; "" offers none.
    """
    row = result.row
    if row is None:
        st.info(literal(result.agreement), icon=":material/info:")
        return
    if result.stand_in:
        st.info(literal(words.stand_in(row)), icon=":material/swap_horiz:")
    with st.container(horizontal=True):
        st.metric("Norm in the file" if result.loading else "Norm", f"{row.norm:.3f}")
        if result.loading:
            st.metric("Norm in the model", f"{result.loaded_norm:.3f}")
        st.metric("Median norm", f"{result.median_norm:.3f}")
        st.metric("Percentile", f"{row.percentile:.1f}", help="Share of rows that are shorter.")
    parts.facts(words.facts(result, row))
    st.markdown(literal(result.agreement))
    if result.loading:
        st.info(literal(result.loading), icon=":material/info:")
    st.caption("Distances and neighbors in the original space, measured exactly.")
    parts.table(row.places, alt="Distances to the mean row, the unknown token and unused rows")
    st.caption(literal(words.neighbors(row)))
    if not row.nearest.empty:
        parts.table(row.nearest, alt="Nearest rows by cosine")
        if name:
            table_files.offer(row.nearest, name=name)
    if result.output_row:
        st.caption(literal(words.output_row(result.output_row)))
        parts.table(result.output_row.nearest, alt="Nearest rows in the output matrix")
