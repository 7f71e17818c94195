"""The questions of the field, each a click away from its answer on a demo."""

from __future__ import annotations

import streamlit as st

from inspector.catalog import PAGES
from inspector.text import literal
from pages._tour.questions import QUESTIONS
from pages._ui import address, parts

parts.title("Questions", "Common questions, each answered on a bundled demo")
st.caption("Then open your own in the sidebar: every page works the same.")
for subject, questions in QUESTIONS.items():
    st.header(subject, anchor=False)
    for question in questions:
        page = PAGES[question.page]
        with st.container(border=True):
            address.link(
                f"**{literal(question.asked)}**",
                question.page,
                key=question.asked,
                icon=page.symbol,
                inputs=question.query,
            )
            st.caption(f"{literal(question.look)} *{page.title}, {question.checkpoint}.*")
