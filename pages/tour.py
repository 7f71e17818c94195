"""The questions of the field, each a click away from its answer on a demo."""

from __future__ import annotations

import streamlit as st

from inspector.catalog import PAGES
from inspector.text import literal
from pages._tour.questions import QUESTIONS
from pages._ui import address, finding, parts

ABREAST = 3  # cards

parts.title("Questions", "Common questions, each answered on a bundled demo")
find = finding.field("Find a question", placeholder="such as tied, padding or lens").casefold()
found = [
    question
    for subject, questions in QUESTIONS.items()
    for question in questions
    if find in f"{subject} {question.asked} {question.look} {PAGES[question.page].title}".casefold()
]
if not found:
    st.info("No question matches: clear the search field, or try another word.")
with st.container(key="questions", gap="xsmall"):
    for start in range(0, len(found), ABREAST):
        for place, question in zip(st.columns(ABREAST), found[start : start + ABREAST], strict=False):
            page = PAGES[question.page]
            with place, st.container(border=True, height="stretch", gap=None):
                address.link(
                    f"**{literal(question.asked)}**",
                    question.page,
                    key=question.asked,
                    icon=page.symbol,
                    inputs=question.query,
                )
                st.caption(literal(question.look))
