"""What is in this checkpoint?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.analyses.overview.words import HEADS, IN_MEMORY, PARAMETERS, details
from inspector.names import find_rows
from inspector.text import bytes_text
from pages._overview import identity
from pages._ui import finding, options, parts, session

checkpoint = session.opened()
parts.heading("overview", checkpoint)
overview: Overview = session.run(OverviewRequest())
parts.warnings(overview.warnings)
st.page_link("pages/tour.py", label="New to this? Start with the questions", icon=":material/help:")

with st.container(horizontal=True, key="facts"):
    parts.count("Parameters", overview.unique_parameters, explanation=PARAMETERS)
    parts.count("Layers", overview.layers)
    parts.count("Hidden size", overview.d_model)
    parts.count("Vocabulary rows", overview.vocab_rows)
    st.metric("On disk", bytes_text(overview.nbytes_on_disk), help="All files together.")
    st.metric("In memory", bytes_text(overview.nbytes_in_memory), help=IN_MEMORY)

left, right = st.columns([3, 2], gap="large")
with left:
    st.subheader("Heads", anchor=False)
    st.caption("Tasks that this checkpoint supports, based on the weights in its files.")
    rows = [
        f"| {'**' if there == 'present' else ''}{HEADS[head][0]}"
        f"{'**' if there == 'present' else ''} | {HEADS[head][1].replace('[', chr(92) + '[')} | "
        + (":green-badge[:material/check: present]" if there == "present" else ":gray-badge[:material/remove: absent]")
        + " |"
        for head, there in overview.heads.items()
    ]
    st.markdown("\n".join(["| Head | Answers | In the files |", "|---|---|---|", *rows]))
with right:
    st.subheader("Model details", anchor=False)
    parts.facts(details(overview))
    parts.page_link("sharing", "do ties hold?")

st.subheader("Tensors", anchor=False)
find = options.ask(
    OverviewRequest, "find", type="search", live=True, placeholder="such as layer.0 or bias", icon=":material/search:"
)
finding.listed(
    find_rows(overview.tensors, find, ("name", "dtype", "shape", "file")),
    "tensor",
    of=f"{len(overview.tensors):,} stored tensors. Click a column header to sort.",
    name=f"{checkpoint.name}-tensors",
    alt="Names, shapes, dtypes and sizes of the stored tensors",
)

left, right = st.columns([3, 2], gap="large")
with left:
    st.subheader("Files", anchor=False)
    files = [
        {"name": f.name, "format": f.format, "nbytes": f.nbytes, "sha256": f.sha256 or "—"} for f in overview.files
    ]
    parts.table(pd.DataFrame(files), alt="Files of the checkpoint")
with right:
    st.subheader("Configuration", anchor=False)
    with st.expander(f"config.json as used ({len(overview.config)} keys)"):
        st.json(overview.config, expanded=1)
    identity.draw(checkpoint, overview)
    parts.elsewhere(checkpoint, OverviewRequest(find=find))
