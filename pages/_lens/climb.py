"""All head steps of one cell: what each did to its tokens, and the geometry behind it."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.analyses.ladder import figures
from inspector.analyses.ladder.request import LadderRequest
from inspector.analyses.ladder.result import Climb
from inspector.analyses.ladder.words import GEOMETRY, TRANSFORMED, moves, notable, steps_at
from inspector.analyses.lens.result import Lens
from inspector.plotting.ranks import rank_lines
from inspector.request import join_list
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._lens import cells as lens_cells
from pages._ui import parts, session, table_files
from pages._ui.words import listed

MOST = 5  # tokens from the top, besides the pinned ones


def draw_cell(lens: Lens, *, layer: int, position: int) -> None:
    """Show what every step says in one cell."""
    st.caption(f":material/ads_click: {literal(steps_at(lens.tokens[position], lens.rungs))}")
    parts.table(lens_cells.ladder(lens, layer, position), alt="Top tokens of the cell after each step of the head")


def draw_ranks(checkpoint: Opened, request: LadderRequest) -> None:
    """Show what each step did to the tokens of one cell."""
    climb: Climb | None = session.ask(request)
    if climb is None:
        return
    ids = notable(climb, most=MOST)
    _ranks(checkpoint, climb, ids)
    best = [f"id {index}" for index in ids[:MOST]]
    with st.expander("Every token at every step"):
        st.markdown(listed(moves(climb, index) for index in ids))
        ranks = climb.ranks.assign(rank=climb.ranks["rank"] + 1)
        parts.table(ranks, height=240, alt="Rank of each token after each step")
        table_files.offer(
            climb.ranks, name=f"{checkpoint.name}-ladder-{request.layer}-{request.position}", label="Steps"
        )
    st.button(f"Pin the top {len(best)} tokens of this cell", icon=":material/keep:", on_click=_pin, args=(best,))


def draw_geometry(checkpoint: Opened, lens: Lens, request: LadderRequest) -> None:
    """Show direction and length of the tokens of one cell."""
    climb: Climb | None = session.ask(request)
    if climb is None:
        return
    known = pd.DataFrame(climb.geometry[climb.geometry["cosine"].notna()])
    if len(known):
        _geometry(checkpoint, climb, known, f"layer {lens.layers[request.layer]}, position {request.position}")
    columns = ["token", "token_id", "norm", "cosine", "dot", "bias", "logit", "probability"]
    parts.table(pd.DataFrame(climb.geometry[columns]), height=240, alt="Norm, cosine, dot product and logit of tokens")


def _ranks(checkpoint: Opened, climb: Climb, ids: list[int]) -> None:
    if len(climb.rungs) > 1:
        ranks = figures.figure(climb, name=checkpoint.name, ids=ids, theme=session.theme())
        parts.chart(ranks, key="climb", alt="Rank of the top tokens after each step, as below")


def _geometry(checkpoint: Opened, climb: Climb, known: pd.DataFrame, where: str) -> None:
    figure = figures.geometry_plot(
        known,
        climb.ranks,
        hidden_norm=climb.hidden_norm,
        title=f"Direction and length, {checkpoint.name}",
        subtitle=f"{where}, |h| = {climb.hidden_norm:.3g}",
        theme=session.theme(),
    )
    parts.chart(
        figure,
        key="geometry",
        alt="Tokens by cosine with the hidden state and by norm; the table below lists the numbers",
    )
    beyond = f" {TRANSFORMED}" if "logits" in climb.rungs else ""
    st.caption(literal(GEOMETRY + beyond))


def trajectories(checkpoint: Opened, lens: Lens, *, rung: str, position: int) -> None:
    """Draw the ranks of the pinned tokens over layers at one position."""
    pinned = lens.pinned
    here = pd.DataFrame(pinned[(pinned["rung"] == rung) & (pinned["position"] == position)])
    if not len(here):
        return
    figure = rank_lines(
        here,
        along="layer",
        stops=range(len(lens.layers)),
        labels=["emb.", *lens.layers[1:]],
        title=f"Pinned tokens over layers, {checkpoint.name}",
        subtitle=f"position {position} ({lens.tokens[position]}), by {rung}",
        theme=session.theme(),
    )
    parts.chart(
        figure,
        key="trajectories",
        alt="Rank of each pinned token at every layer; the file of pinned tokens has the numbers",
    )


def _pin(best: list[str]) -> None:
    st.session_state["pins"] = join_list(best)
