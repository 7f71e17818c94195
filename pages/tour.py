"""The questions of the field, each a click away from its answer on a demo."""

from __future__ import annotations

import streamlit as st

from inspector.catalog import PAGES
from pages._shared import session
from pages._shared.questions import QUESTIONS
from pages._shared.words import literal

session.guard()
st.title("Questions", anchor=False)
st.write(
    "What people ask about transformer checkpoints, each answered on a demo that comes with the "
    "app. Then open your own in the sidebar: every page asks it the same."
)
for subject, questions in QUESTIONS.items():
    st.subheader(subject, anchor=False)
    for question in questions:
        page = PAGES[question.page]
        with st.container(border=True):
            st.page_link(f"pages/{question.page}.py", label=f"**{literal(question.asked)}**",
                         icon=f":material/{page.symbol}:", query_params=question.query)  # fmt: skip
            st.caption(f"{literal(question.look)} *{page.title}, {question.checkpoint}.*")
