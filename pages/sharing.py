"""Which parameters share memory?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector import figures
from inspector.figures.sharing import group_letter
from inspector.figures.text import bytes_text, plural
from inspector.results import Sharing
from pages._shared import parts, session
from pages._shared.sharing_words import explain_sharing, properties, tensors_of_row
from pages._shared.words import literal

session.guard()
checkpoint = session.opened()
parts.heading("sharing", checkpoint)
sharing: Sharing = session.run("sharing")
parts.warnings(sharing.warnings)

saved = sharing.listed_nbytes - sharing.unique_nbytes
with st.container(horizontal=True):
    parts.count("Parameters by name", sharing.listed_parameters,
                explanation="Every name counted, names of the same tensor too.")  # fmt: skip
    parts.count("Parameters in memory", sharing.unique_parameters,
                explanation="Every number counted once.")  # fmt: skip
    st.metric("Saved by sharing", bytes_text(saved))
    st.metric("Shared groups", len(sharing.groups))

graph = figures.sharing_graph(
    sharing.rows,
    sharing.groups,
    title=f"Names and tensors of {checkpoint.name}",
    subtitle=f"{plural(len(sharing.tensors), 'name')}, {sharing.unique_parameters:,} parameters",
    theme=session.theme(),
    tensors=sharing.tensors,
)
left, right = st.columns([5, 2], gap="large")
with left:
    picked = parts.clickable(graph, key="graph", alt="Graph of parameter names and the tensors "
                             "that they share; the table below holds the same")  # fmt: skip
with right:
    st.subheader("Properties", anchor=False)
    if picked is None:
        st.caption(":material/ads_click: Click a row of the graph to see what it is.")
        row = next((n for n, group in enumerate(sharing.rows["group"]) if group >= 0), 0)
    else:
        row = picked[0]
    parts.facts(properties(sharing, row))
    with st.expander("Tensors of this row"):
        st.code("\n".join(tensors_of_row(sharing, row)), language=None, wrap_lines=True)

st.subheader("What is shared, and how we know", anchor=False)
if not sharing.groups:
    st.info("Nothing is shared: every name has a tensor of its own. Checkpoints with tied input "
            "and output embeddings, such as demo-bert, show a group here.")  # fmt: skip
for number, group in enumerate(sharing.groups):
    with st.container(border=True):
        st.markdown(
            f"**{group_letter(number)}** {parts.verdict(group.verdict)} {literal(group.reason)}"
        )
        st.code("\n".join(group.names), language=None)
        st.caption(
            f"{' × '.join(f'{n:,}' for n in group.shape)}, {bytes_text(group.nbytes)} a copy. "
            f"Declared by the configuration: {'yes' if group.declared else 'no'}. "
            f"In the file: {literal(', '.join(group.in_file) or 'none of them')}. "
            f"One tensor in memory: {'yes' if group.in_memory else 'no'}."
        )
if sharing.reused_modules:
    st.markdown("**Modules that one forward pass runs more than once**")
    parts.table(pd.DataFrame([{"name": m.name, "uses": m.uses} for m in sharing.reused_modules]),
                alt="Reused modules")  # fmt: skip

st.subheader("Why is it so?", anchor=False)
for question, answer in explain_sharing(sharing):
    with st.expander(question, expanded=True):
        st.markdown(answer)

where, every = st.tabs(["Where the parameters are", "Every name"])
with where:
    parts.chart(
        figures.parameter_icicle(sharing.tensors, title=f"Parameters of {checkpoint.name}",
                                 theme=session.theme()),
        alt="Modules as boxes, as wide as their share of the parameters",
    )  # fmt: skip
    st.caption(":material/ads_click: Click a module to look inside, its parent to come back.")
with every:
    parts.table(sharing.tensors, height=420, alt="Every parameter name with its group")
    parts.download(sharing.tensors, name=f"{checkpoint.name}-sharing")
parts.elsewhere(checkpoint, ("sharing",))
