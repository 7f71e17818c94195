"""One cell of the lens: which one is looked at, and what every step says there."""

from __future__ import annotations

from functools import partial

import plotly.graph_objects as go
import streamlit as st

from inspector.analyses.lens.result import Lens
from pages._ui import parts

Cell = tuple[int, int]  # layer, position
FIRST = "heatmap"  # key of the figure that outlines the cell


def start(lens: Lens, mask: str | None) -> None:
    """Keep the chosen cell inside a shorter text or a smaller model; at first, what is asked for.

    Where nobody chose another cell, the first one to look at follows the text.

    Args:
        lens: What there is to choose from.
        mask: The mask token: its first position is looked at first, else the last one.
    """
    state = st.session_state
    last = len(lens.layers) - 1
    begin = (last, interesting(lens, mask))
    before = state.get("lens start", (None, None))
    largest = (last, len(lens.tokens) - 1)
    for key, old, new, most in zip(("layer", "position"), before, begin, largest, strict=True):
        if key in state and state[key] == old:
            state[key] = new
        elif state.get(key, 0) > most:
            state[key] = most
    state["lens start"] = begin


def choose(lens: Lens) -> Cell:
    """Choose a cell by hand, as a click does."""
    layer, position = st.session_state["lens start"]
    heading = st.empty()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        layer = st.number_input("Layer", 0, len(lens.layers) - 1, layer, key="layer", bind="query-params", width=105)
        position = st.number_input(
            "Position", 0, len(lens.tokens) - 1, position, key="position", bind="query-params", width=105
        )
    heading.header(f"Layer {lens.layers[layer]}, position {position}", anchor=False, width="content")
    return int(layer), int(position)


def interesting(lens: Lens, mask: str | None) -> int:
    """The position to look at first: the first mask, else the last one."""
    return lens.tokens.index(mask) if mask in lens.tokens else len(lens.tokens) - 1


def outlined(cell: Cell, *, view: tuple[object, ...]) -> Cell:
    """The cell that a new figure outlines.

    A click outlines its cell in the browser; a figure that followed would be drawn anew, and lose
    the zoom. So the figure follows only what was chosen in another way, or when it is new anyway.

    Args:
        cell: That is looked at.
        view: All that the figure shows.
    """
    state = st.session_state
    if cell != state.get("lens clicked") or state.get("lens view") != view:
        state["lens outlined"], state["lens view"] = cell, view
        state.pop("lens clicked", None)
    return state["lens outlined"]


def draw(figure: go.Figure, *, key: str, alt: str) -> None:
    """Draw a heat map whose cells can be clicked; a large one scrolls inside."""
    width = figure.to_dict()["layout"].get("width")
    name = key.replace(" ", "_")
    if width:  # wider than the page: the frame scrolls, and the chart keeps its width
        inside = f".st-key-{name}_frame div:has(> [data-testid=stPlotlyChart])"
        st.html(f"<style>{inside} {{min-width: {width}px}}.st-key-{name}_frame {{overflow: auto}}</style>")
    with st.container(key=f"{name}_frame", border=False, height=parts.frame_height(figure)):
        parts.clickable(figure, key=key, alt=alt, on_click=partial(_take, key), width=width)


def _take(key: str) -> None:
    clicked = parts.mark(st.session_state[key])
    if clicked:
        st.session_state["layer"], st.session_state["position"] = clicked
        if key == FIRST:  # the browser has outlined it there
            st.session_state["lens clicked"] = tuple(clicked)
