"""The rows of a lens whose pass is still under way."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.lens import words
from inspector.analyses.lens.frames import top_tokens
from inspector.analyses.lens.result import LensRows
from inspector.text import literal
from pages._ui import parts, session

PALE = f"<style>[class*=st-key-{session.SO_FAR}] {{opacity: 0.7}}</style>"


def draw(rows: LensRows) -> None:
    """Show the layers so far, paler than the answer; of the step that is chosen if it is among them."""
    chosen = st.session_state.get("rung") or st.query_params.get("rung")
    rung = chosen if chosen in rows.rungs else rows.rungs[-1]
    st.caption(literal(words.so_far(rows, rung)))
    st.html(PALE)
    parts.table(top_tokens(rows, rung), alt="Top token of each cell in the layers read so far")
