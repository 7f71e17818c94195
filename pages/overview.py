"""What is in this checkpoint?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.overview.figures import portrait_figure
from inspector.analyses.overview.figures_parts import portray
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.analyses.overview.words import PORTRAIT, headline
from inspector.text import literal
from pages._overview import identity
from pages._overview import parts as overview_parts
from pages._ui import parts, session

checkpoint = session.opened()
parts.heading("overview", checkpoint)
overview: Overview = session.run(OverviewRequest())
parts.warnings(overview.warnings)
st.markdown(literal(headline(overview)))

picture, side = parts.main_row()
portrait = portray(overview)
picked = None
with picture:
    if overview.stored.names:
        with st.container(key="portrait_place"):
            picked = parts.clickable(
                portrait_figure(
                    portrait, title=f"What {overview.name} consists of", subtitle=PORTRAIT, theme=session.theme()
                ),
                key="portrait",
                alt="Every stored matrix as a rectangle with an area by its parameters; the tab Tensors lists them",
            )
    else:
        st.info("The files hold no tensors, so there is nothing to draw.")
with side:
    if picked and picked[0] < len(portrait.parts):
        overview_parts.draw_part(portrait.parts[picked[0]])
    overview_parts.draw_heads(overview)
    overview_parts.draw_facts(overview)
    identity.draw(checkpoint, overview)
    parts.page_link("sharing", "do ties hold?")
    st.page_link("pages/tour.py", label="New to this? Start with the questions", icon=":material/help:")

tensors, files, configuration = parts.in_tabs("Tensors", "Files", "Configuration", opened_by={"find": "Tensors"})
find = ""
if tensors.open:
    with tensors:
        find = overview_parts.draw_tensors(overview, name=checkpoint.name)
if files.open:
    with files:
        overview_parts.draw_files(overview)
if configuration.open:
    with configuration:
        st.json(overview.config, expanded=1)
parts.elsewhere(checkpoint, OverviewRequest(find=find))
