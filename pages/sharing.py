"""Which parameters share memory?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.sharing.figures import figure
from inspector.analyses.sharing.figures_parameters import parameter_icicle
from inspector.analyses.sharing.frames import reused_modules
from inspector.analyses.sharing.result import Sharing
from inspector.analyses.sharing.words import REUSED, explain
from inspector.catalog import request_of
from inspector.text import bytes_text, literal, percent_text
from pages._sharing import parts as sharing_parts
from pages._sharing import what_if
from pages._ui import parts, session

checkpoint = session.opened()
parts.heading("sharing", checkpoint)
request = request_of("sharing")()
sharing: Sharing = session.run(request)
parts.warnings(sharing.warnings)

sharing_parts.draw_answer(sharing)
saved = sharing.listed_nbytes - sharing.unique_nbytes
with st.container(horizontal=True):
    parts.count(
        "Parameters by name",
        sharing.listed_parameters,
        explanation="Counts every name, including several names of one tensor.",
    )
    parts.count("Unique parameters", sharing.unique_parameters, explanation="Counts every number in memory once.")
    st.metric(
        "Saved by sharing",
        percent_text(saved / sharing.listed_nbytes) if saved else "nothing",
        help=f"{bytes_text(saved)}: {bytes_text(sharing.listed_nbytes)} if every name had its own tensor, "
        f"{bytes_text(sharing.unique_nbytes)} as it is.",
    )
    st.metric(
        "Shared groups",
        sum(group.in_memory for group in sharing.groups),
        help=f"Groups of names that share one block of memory, out of {len(sharing.groups)} that do, are declared to, "
        "or could.",
    )

with st.container(key="sharing_graph"):
    picked = parts.clickable(
        figure(sharing, name=checkpoint.name, theme=session.theme()),
        key="graph",
        alt="Graph of parameter names and the tensors that they share; the table below lists the same",
    )
st.caption(
    ":material/ads_click: Click a row or a tensor in the graph for details. The bar under a name shows its size; each "
    "box on the right is one tensor in memory."
)
if picked:
    with st.container(border=True):
        st.subheader("Properties", anchor=False)
        sharing_parts.draw_row(sharing, picked[0])

st.subheader("Shared groups and their evidence", anchor=False)
if not sharing.groups:
    st.info("Checkpoints with tied input and output embeddings, such as demo-bert, show a group here.")
sharing_parts.draw_groups(sharing)
if sharing.reused_modules:
    st.markdown(f"**{REUSED}**")
    parts.table(reused_modules(sharing), alt="Reused modules")

explained = list(explain(sharing))
if explained:
    st.subheader("Explanations", anchor=False)
for question, answer in explained:
    with st.expander(literal(question), expanded=True):
        st.markdown(literal(answer))

what_if.draw(checkpoint, sharing)

st.subheader("Parameters by module", anchor=False)
parts.chart(
    parameter_icicle(sharing.tensors, sharing.groups, name=checkpoint.name, theme=session.theme()),
    alt="Modules as boxes; a box's width is its share of the parameters",
)
st.caption(":material/ads_click: Click a module to look inside, or its parent to go back.")

sharing_parts.draw_names(sharing, checkpoint)
parts.elsewhere(checkpoint, request)
