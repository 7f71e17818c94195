"""The heat map of the lens: what it shows, one text or two side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from inspector.analyses.lens import figures_colors as lens_colors
from inspector.analyses.lens import words
from inspector.analyses.lens.figures import token_heatmap
from inspector.analyses.lens.figures_colors import Coloring
from inspector.analyses.lens.figures_compare import compare_cells
from inspector.analyses.lens.result import Lens
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._lens import cells as lens_cells
from pages._ui import session
from pages._ui.beside import Other

SIZES = ("automatic", "with tokens", "all in one view")


@dataclass(frozen=True, slots=True)
class View:
    """What the heat map shows of a lens."""

    rung: str
    color: str
    pin: str | None  # token whose rank is shown, where that is what is shown
    small: bool | None  # None: by the number of cells

    def cells(self, lens: Lens) -> pd.DataFrame:
        """Cells of the step."""
        return pd.DataFrame(lens.cells[lens.cells["rung"] == self.rung])

    def coloring(self, lens: Lens) -> Coloring:
        """What colors the cells."""
        states, pinned = lens.states, lens.pinned
        return lens_colors.color_cells(
            self.color,
            cells=self.cells(lens),
            states=pd.DataFrame(states[states["rung"] == self.rung]),
            pinned=pd.DataFrame(pinned[(pinned["rung"] == self.rung) & (pinned["token"] == self.pin)]),
        )


def choose(lens: Lens) -> View:
    """Draw the choices of the heat map, and the badge."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        rung = st.segmented_control(
            "Head step", lens.rungs, default=lens.rungs[-1], required=True, key="rung", bind="query-params"
        )
        if rung not in lens.rungs:  # kept from another checkpoint, which has more rungs
            rung = lens.rungs[-1]
        states = pd.DataFrame(lens.states[lens.states["rung"] == rung])
        names = lens_colors.offered(rung, states=states, pinned=lens.pinned)
        color = st.selectbox("Color by", names, key="shade", bind="query-params", width=260)
        pin = None
        if color == "rank of a pinned token":
            pin = st.selectbox(
                "Pinned token", list(dict.fromkeys(lens.pinned["token"])), key="pin", bind="query-params", width=180
            )
        size = st.selectbox(
            "Cells",
            SIZES,
            key="cells",
            bind="query-params",
            width=180,
            help="With tokens: wide cells that scroll. All in one view: point at a cell to see its tokens.",
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        _badge(lens)
        st.caption(f"{lens.device}, {lens.dtype}, {lens.milliseconds:.0f} ms")
    st.markdown(literal(lens.rung_notes[rung]))
    small = {"with tokens": False, "all in one view": True}.get(size or "")
    return View(rung, color if color in names else names[0], pin, small)


def draw(checkpoint: Opened, lens: Lens, view: View, cell: lens_cells.Cell, other: Other | None) -> None:
    """Draw the heat map, and the other one below it on the same scale."""
    coloring = view.coloring(lens)
    both = _on_one_scale(view, coloring, other.lens) if other else None
    coloring, theirs = both or (coloring, None)
    st.caption(":material/ads_click: Click a cell to see all its steps, or choose it below.")
    shown = lens_cells.outlined(
        cell, view=(checkpoint.fingerprint, lens.tokens, lens.dtype, view, session.theme().name, other and other.title)
    )
    _draw_one(
        lens,
        view,
        coloring,
        title=f"Top token of {checkpoint.name} at every layer and position",
        chosen=shown,
        key=lens_cells.FIRST,
    )
    if other is not None:
        _draw_other(lens, view, theirs, other)


def _badge(lens: Lens) -> None:
    verified = lens.max_abs_error is not None and not lens.taken_from_model
    icon, color = (":material/verified:", "green") if verified else (":material/info:", "gray")
    st.badge(words.agreement_in_short(lens), icon=icon, color=color, help=words.agreement(lens))


def _on_one_scale(view: View, mine: Coloring, lens: Lens) -> tuple[Coloring, Coloring] | None:
    """Both colorings with one range; None where the other lens lacks the numbers."""
    states = pd.DataFrame(lens.states[lens.states["rung"] == view.rung])
    if view.rung not in lens.rungs or view.color not in lens_colors.offered(
        view.rung, states=states, pinned=lens.pinned
    ):
        return None
    if view.pin is not None and view.pin not in set(lens.pinned["token"]):
        return None
    return lens_colors.on_one_scale(mine, view.coloring(lens))


def _draw_other(lens: Lens, view: View, coloring: Coloring | None, other: Other) -> None:
    if view.rung not in other.lens.rungs:
        st.info(literal(words.no_step(other.title, view.rung, other.lens)), icon=":material/info:")
        return
    if coloring is None:
        first = lens_colors.offered(view.rung, states=other.lens.states.head(0), pinned=other.lens.pinned.head(0))[0]
        st.info(literal(words.another_color(other.title, view.color, first)), icon=":material/info:")
        coloring = replace(view, color=first, pin=None).coloring(other.lens)
    found = compare_cells(
        view.cells(lens),
        view.cells(other.lens),
        tokens=(lens.tokens, other.lens.tokens),
        layers=(len(lens.layers), len(other.lens.layers)),
    )
    st.markdown(literal(words.apart(found, (lens.tokens, other.lens.tokens), lens.layers)))
    marked = replace(coloring, signs=frozenset(found.cells), sign=lens_colors.DIFFERS)
    _draw_one(other.lens, view, marked, title=f"For comparison: {other.title}", chosen=None, key="second heatmap")


def _draw_one(
    lens: Lens, view: View, coloring: Coloring, *, title: str, chosen: lens_cells.Cell | None, key: str
) -> None:
    figure = token_heatmap(
        view.cells(lens),
        coloring=coloring,
        tokens=lens.tokens,
        layers=lens.layers,
        title=title,
        subtitle=f"by {view.rung}, colored by {coloring.name}",
        theme=session.theme(),
        small=view.small,
        chosen=chosen,
    )
    lens_cells.draw(
        figure,
        key=key,
        alt=f"Top token by {view.rung}, layers by positions; the table below shows the chosen cell, the file has all "
        "cells",
    )
