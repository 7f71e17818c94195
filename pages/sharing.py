"""Which parameters share memory?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.sharing.figures import figure
from inspector.analyses.sharing.figures_parameters import parameter_icicle
from inspector.analyses.sharing.frames import reused_modules
from inspector.analyses.sharing.result import Sharing
from inspector.analyses.sharing.words import REUSED
from inspector.catalog import request_of
from pages._sharing import parts as sharing_parts
from pages._sharing import what_if
from pages._ui import parts, session

checkpoint = session.opened()
parts.heading("sharing", checkpoint)
request = request_of("sharing")()
sharing: Sharing = session.run(request)
parts.warnings(sharing.warnings)

sharing_parts.draw_answer(sharing)
graph_place, side = parts.main_row()
graph = figure(sharing, name=checkpoint.name, theme=session.theme())
with graph_place, st.container(key="sharing_graph", height=parts.frame_height(graph)):
    picked = parts.clickable(
        graph,
        key="graph",
        alt="Graph of parameter names and the tensors that they share; the groups beside it list the same",
    )
with side:
    sharing_parts.count(sharing)
    if picked:
        with st.container(border=True):
            st.header("Properties", anchor=False)
            sharing_parts.draw_row(sharing, picked[0])
    else:
        st.caption(":material/ads_click: Click a row or a tensor in the graph for details.")
    if not sharing.groups:
        st.info("Checkpoints with tied input and output embeddings, such as demo-bert, show a group here.")
    sharing_parts.draw_groups(sharing)
    if sharing.reused_modules:
        st.markdown(f"**{REUSED}**")
        parts.table(reused_modules(sharing), alt="Reused modules")

why, change, modules, names = parts.in_tabs(
    "Why", "What if", "Parameters by module", "Names", opened_by={"change": "What if", "find": "Names"}
)
if why.open:
    with why:
        sharing_parts.draw_why(sharing)
if change.open:
    with change:
        what_if.draw(checkpoint, sharing)
if modules.open:
    with modules:
        parts.chart(
            parameter_icicle(sharing.tensors, sharing.groups, name=checkpoint.name, theme=session.theme()),
            alt="Modules as boxes; a box's width is its share of the parameters",
        )
        st.caption(":material/ads_click: Click a module to look inside, or its parent to go back.")
if names.open:
    with names:
        sharing_parts.draw_names(sharing, checkpoint)
parts.elsewhere(checkpoint, request)
