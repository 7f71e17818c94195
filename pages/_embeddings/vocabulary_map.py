"""The vocabulary map as a Streamlit component."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from inspector.analyses.vocabulary_map import component as assets

_mount = component("vocabulary_map", html=assets.html(), css=assets.css(), js=assets.javascript())
# The points come as an element of their own: as long as they stay the same, Streamlit sends no
# more than their hash when the script runs again.
_bring = component("vocabulary_points", js=assets.javascript())


def vocabulary_map(
    packed: assets.PackedPoints,
    state: dict[str, Any],
    *,
    key: str,
    on_click: Callable[[int | None], None],
    on_choose: Callable[[Any], None],
    on_hide: Callable[[list[str]], None],
) -> None:
    """Show a map of the vocabulary whose points can be clicked and chosen.

    Args:
        key: Of the widget; zoom is kept under it.
        on_click: Told the token id that was clicked, None for a click beside all points.
        on_choose: Told what the lasso holds, packed; `unpack_ids` reads it.
        on_hide: Told the names of the layers that are off.
    """

    def clicked() -> None:
        token_id = st.session_state[key].clicked
        on_click(token_id if isinstance(token_id, int) and token_id >= 0 else None)

    def hidden() -> None:
        names = st.session_state[key].hidden
        on_hide([str(name) for name in names] if isinstance(names, list) else [])

    with st.container(gap=None):
        _bring(key=f"{key} points", data=packed.data, height=1)
        _mount(
            key=key,
            data=state,
            on_clicked_change=clicked,
            on_chosen_change=lambda: on_choose(st.session_state[key].chosen),
            on_hidden_change=hidden,
        )
