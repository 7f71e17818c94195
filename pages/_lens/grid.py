"""The heat map of the lens: what it shows, one text or two side by side."""

from __future__ import annotations

from collections.abc import Sequence
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
from pages._ui import parts, session
from pages._ui.beside import Other
from pages._ui.words import listed


@dataclass(frozen=True, slots=True)
class LensGridView:
    """What the heat map shows of a lens."""

    rung: str
    color: str
    pin: str | None  # token whose rank is shown, where that is what is shown
    small: bool | None  # None: by the number of cells
    marks: tuple[int, ...]  # positions that are emphasized

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


def choose(lens: Lens, marks: Sequence[int]) -> LensGridView:
    """Draw the choices of the heat map.

    Args:
        lens: What is drawn.
        marks: Positions to emphasize.
    """
    rung = st.selectbox(
        "Head step",
        lens.rungs,
        len(lens.rungs) - 1,
        key="rung",
        bind="query-params",
        width=130,
        help=listed(words.steps(lens)),
    )
    states = pd.DataFrame(lens.states[lens.states["rung"] == rung])
    names = lens_colors.offered(rung, states=states, pinned=lens.pinned)
    color = st.selectbox("Color by", names, key="shade", bind="query-params", width=150)
    pin = None
    if color == "rank of a pinned token":
        pin = st.selectbox(
            "Pinned token", list(dict.fromkeys(lens.pinned["token"])), key="pin", bind="query-params", width=130
        )
    small = {"with tokens": False, "all in one view": True}.get(st.session_state.get("cells") or "")
    return LensGridView(rung, color if color in names else names[0], pin, small, tuple(marks))


def draw(checkpoint: Opened, lens: Lens, view: LensGridView, cell: lens_cells.Cell, other: Other | None) -> None:
    """Draw the heat map, on the same scale as the other one where there is one."""
    coloring = view.coloring(lens)
    both = _on_one_scale(view, coloring, other.lens) if other else None
    coloring, _ = both or (coloring, None)
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


def draw_other(lens: Lens, view: LensGridView, other: Other) -> None:
    """Draw the heat map of another text or checkpoint, with the cells marked that differ."""
    both = _on_one_scale(view, view.coloring(lens), other.lens)
    _draw_other(lens, view, both[1] if both else None, other)


def _on_one_scale(view: LensGridView, mine: Coloring, lens: Lens) -> tuple[Coloring, Coloring] | None:
    """Both colorings with one range; None where the other lens lacks the numbers."""
    states = pd.DataFrame(lens.states[lens.states["rung"] == view.rung])
    if view.rung not in lens.rungs or view.color not in lens_colors.offered(
        view.rung, states=states, pinned=lens.pinned
    ):
        return None
    if view.pin is not None and view.pin not in set(lens.pinned["token"]):
        return None
    return lens_colors.on_one_scale(mine, view.coloring(lens))


def _draw_other(lens: Lens, view: LensGridView, coloring: Coloring | None, other: Other) -> None:
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
    lens: Lens, view: LensGridView, coloring: Coloring, *, title: str, chosen: lens_cells.Cell | None, key: str
) -> None:
    figure = parts.drawn(
        lambda theme: token_heatmap(
            view.cells(lens),
            coloring=coloring,
            tokens=lens.tokens,
            layers=lens.layers,
            title=title,
            subtitle=f"by {view.rung}, colored by {coloring.name}",
            theme=theme,
            small=view.small,
            chosen=chosen,
            emphasized=view.marks if key == lens_cells.FIRST else (),
        )
    )
    lens_cells.draw(
        figure,
        key=key,
        alt=f"Top token by {view.rung}, layers by positions; beside it the chosen cell, below it a table of all cells",
    )
