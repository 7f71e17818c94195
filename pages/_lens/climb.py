"""All head steps of one cell: what each did to its tokens, and the geometry behind it."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.analyses.ladder.request import LadderRequest
from inspector.analyses.ladder.result import Climb
from inspector.analyses.ladder.words import MOST, notable, steps_at
from inspector.analyses.lens.frames import best_by_step
from inspector.analyses.lens.result import Lens
from inspector.plotting.ranks import rank_lines
from inspector.request import join_list
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._ui import parts, session
from pages._ui.answer.rendering import PageView


def draw_cell(lens: Lens, *, layer: int, position: int) -> None:
    """Show what every step says in one cell."""
    st.caption(f":material/ads_click: {literal(steps_at(lens.tokens[position]))}")
    parts.facts(best_by_step(lens, layer, position))


def draw_ranks(checkpoint: Opened, lens: Lens, request: LadderRequest, *, rung: str) -> None:
    """Show what each layer did to the pinned tokens at a position, and each step to the tokens of one cell."""
    _trajectories(checkpoint, lens, rung=rung, position=request.position)
    climb: Climb | None = session.ask(request)
    if climb is None:
        return
    page = PageView.of(climb, request, name=checkpoint.name)
    page.headline()
    page.picture()
    with st.expander("Every token at every step"):
        page.beside()
        page.tab("Ranks")
    best = [f"id {index}" for index in notable(climb, most=MOST)[:MOST]]
    st.button(f"Pin the top {len(best)} tokens of this cell", icon=":material/keep:", on_click=_pin, args=(best,))


def draw_geometry(checkpoint: Opened, request: LadderRequest) -> None:
    """Show direction and length of the tokens of one cell."""
    climb: Climb | None = session.ask(request)
    if climb is not None:
        PageView.of(climb, request, name=checkpoint.name).tab("Geometry")


def _trajectories(checkpoint: Opened, lens: Lens, *, rung: str, position: int) -> None:
    """Draw the ranks of the pinned tokens over layers at one position."""
    pinned = lens.pinned
    here = pd.DataFrame(pinned[(pinned["rung"] == rung) & (pinned["position"] == position)])
    if not len(here):
        return
    figure = parts.drawn(
        lambda theme: rank_lines(
            here.sort_values(
                "token_id", kind="stable"
            ),  # as in the figure of the steps: the same token, the same color
            along="layer",
            stops=range(len(lens.layers)),
            labels=["emb.", *lens.layers[1:]],
            title=f"Pinned tokens over layers, {checkpoint.name}",
            subtitle=f"position {position} ({lens.tokens[position]}), by {rung}",
            theme=theme,
        )
    )
    parts.chart(
        figure,
        key="trajectories",
        alt="Rank of each pinned token at every layer; the file of pinned tokens has the numbers",
    )


def _pin(best: list[str]) -> None:
    st.session_state["pins"] = join_list(best)
