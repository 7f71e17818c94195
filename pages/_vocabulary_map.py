"""The vocabulary map as a Streamlit component."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import streamlit as st
from streamlit.components.v2 import component

from inspector.figures import Theme
from inspector.figures import vocabulary_map as assets

_mount = component("vocabulary_map", html=assets.html(), css=assets.css(), js=assets.javascript())


def vocabulary_map(
    points: pd.DataFrame,
    *,
    title: str,
    theme: Theme,
    key: str,
    selected: int | None = None,
    highlighted: Iterable[int] = (),
    subtitle: str = "",
    axes: tuple[str, str] = ("", ""),
    height: int = 560,
) -> int | None:
    """Show a map of the vocabulary whose points can be clicked.

    Args:
        points: `Projection.points` of two dimensions.
        title: With the checkpoint's name; written into the downloaded picture.
        theme: Colours.
        key: Of the widget; zoom and selection are kept under it.
        selected: The token to select. It counts when it differs from the last call's: until then
            what was clicked stays selected.
        highlighted: The tokens that a search found.
        subtitle: One more line of the downloaded picture.
        axes: What x and y are.
        height: Of the map in pixels.

    Returns:
        The selected token's id, by click or by `selected`; None when nothing is selected.
    """
    memory = f"{key}:selection"
    asked, shown = st.session_state.get(memory, (None, None))
    if selected != asked:
        shown = selected
    st.session_state[memory] = (selected, shown)

    def remember() -> None:
        clicked = st.session_state[key].clicked
        st.session_state[memory] = (st.session_state[memory][0], None if clicked < 0 else clicked)

    _mount(
        key=key,
        data=assets.payload(
            points,
            title=title,
            subtitle=subtitle,
            axes=axes,
            selected=shown,
            highlighted=highlighted,
            theme=theme,
            height=height,
        ),
        on_clicked_change=remember,
    )
    return shown
