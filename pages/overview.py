"""What is in this checkpoint?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.analyses.overview.figures import portrait_figure
from inspector.analyses.overview.figures_parts import portray
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.analyses.overview.words import HEADS, IN_MEMORY, PARAMETERS, PORTRAIT, details
from inspector.names import find_rows
from inspector.text import bytes_text
from pages._overview import identity
from pages._ui import finding, options, parts, session

checkpoint = session.opened()
parts.heading("overview", checkpoint)
overview: Overview = session.run(OverviewRequest())
parts.warnings(overview.warnings)

with st.container(horizontal=True, key="facts"):
    parts.count("Parameters", overview.unique_parameters, explanation=PARAMETERS)
    parts.count("Layers", overview.layers)
    parts.count("Hidden size", overview.d_model)
    parts.count("Vocabulary rows", overview.vocab_rows)
    st.metric("On disk", bytes_text(overview.nbytes_on_disk), help="All files together.")
    st.metric("In memory", bytes_text(overview.nbytes_in_memory), help=IN_MEMORY)

picture, side = parts.main_row()
if overview.stored.names:
    with picture:
        portrait = portrait_figure(
            portray(overview), title=f"What {checkpoint.name} consists of", subtitle=PORTRAIT, theme=session.theme()
        )
        with st.container(height=parts.frame_height(portrait), border=False):
            parts.chart(portrait, alt="Every stored matrix to scale; the tab Tensors lists them", key="portrait")
with side:
    rows = [
        f"| {'**' if there == 'present' else ''}{HEADS[head][0]}{'**' if there == 'present' else ''} | "
        + (":green-badge[:material/check: present]" if there == "present" else ":gray-badge[:material/remove: absent]")
        + " |"
        for head, there in overview.heads.items()
    ]
    st.markdown("\n".join(["| Head | In the files |", "|---|---|", *rows]))
    parts.facts(details(overview))
    parts.page_link("sharing", "do ties hold?")
    identity.draw(checkpoint, overview)

tensors, files, configuration = parts.in_tabs("Tensors", "Files", "Configuration", opened_by={"find": "Tensors"})
find = ""
if tensors.open:
    with tensors:
        find = options.ask(
            OverviewRequest,
            "find",
            type="search",
            live=True,
            placeholder="such as layer.0 or bias",
            icon=":material/search:",
        )
        finding.listed(
            find_rows(overview.tensors, find, ("name", "dtype", "shape", "file")),
            "tensor",
            of=f"{len(overview.tensors):,} stored tensors. Click a column header to sort.",
            name=f"{checkpoint.name}-tensors",
            alt="Names, shapes, dtypes and sizes of the stored tensors",
        )
if files.open:
    with files:
        listed = [
            {"name": f.name, "format": f.format, "nbytes": f.nbytes, "sha256": f.sha256 or "—"} for f in overview.files
        ]
        parts.table(pd.DataFrame(listed), alt="Files of the checkpoint")
if configuration.open:
    with configuration:
        st.caption(f"config.json as used ({len(overview.config)} keys)")
        st.json(overview.config, expanded=1)
st.page_link("pages/tour.py", label="New to this? Start with the questions", icon=":material/help:")
parts.elsewhere(checkpoint, OverviewRequest(find=find))
