"""The picture of a model's matrices, and what is known of it at a glance."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks
from inspector.analyses.overview.figures import portrait_figure
from inspector.analyses.overview.figures_parts import portray
from inspector.analyses.overview.result import Overview
from inspector.analyses.overview.words import headline, portrait_subtitle
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._overview import identity
from pages._overview import parts as overview_parts
from pages._ui import parts, session


def draw(checkpoint: Opened, overview: Overview) -> None:
    """Draw it, with the facts beside it; numbers are read when colors are to tell them."""
    st.markdown(literal(headline(overview)))
    picture, side = parts.main_row()
    portrait = portray(overview)
    picked = None
    checks: Checks | None = session.at_hand(CheckRequest())
    with picture:
        if overview.stored.names:
            color = overview_parts.choose_color(portrait, numbers=not session.is_preview(checkpoint))
            if color == "rms":
                checks = session.ask(CheckRequest())
            with st.container(key="portrait_place"):
                picked = parts.clickable(
                    portrait_figure(
                        portrait,
                        title=f"What {overview.name} consists of",
                        subtitle=portrait_subtitle(color, checks.values if checks else "none"),
                        color=color,
                        rms=checks.rms if checks else (),
                        theme=session.theme(),
                    ),
                    key="portrait",
                    alt="Every stored matrix as a rectangle with an area by its parameters; the tab Tensors lists them",
                )
        else:
            st.info("The files hold no tensors, so there is nothing to draw.")
    with side:
        if picked and picked[0] < len(portrait.parts):
            overview_parts.draw_part(portrait.parts[picked[0]], checks.rms if checks else ())
        overview_parts.draw_heads(overview)
        overview_parts.draw_facts(overview)
        identity.draw(checkpoint, overview)
        parts.page_link("sharing", "do ties hold?")
        st.page_link("pages/tour.py", label="New to this? Start with the questions", icon=":material/help:")
