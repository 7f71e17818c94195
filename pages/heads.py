"""What does each task head answer?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.heads import words
from inspector.analyses.heads.result import HeadAnswer
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.analyses.overview.words import HEADS
from inspector.text import literal
from pages._heads import answers as head_answers
from pages._heads import asking as head_asking
from pages._heads import sections as head_sections
from pages._ui import parts, session

checkpoint = session.opened()
parts.heading("heads", checkpoint)

overview: Overview = session.run(OverviewRequest())
head = head_asking.choose(overview)
if head:
    st.markdown(f"**{HEADS[head][0]}**: {literal(HEADS[head][1])}")
request = head_asking.ask(checkpoint, head)
answer: HeadAnswer | None = session.ask(request)
if answer is not None:
    parts.warnings(answer.warnings)
    with st.container(horizontal=True):
        st.metric("Class", answer.architecture)
        st.metric("Device", answer.device)
        st.metric("Dtype", answer.dtype)
        st.metric(
            "Forward pass", f"{answer.milliseconds:.1f} ms", help="One pass through the model, which is already loaded."
        )
        st.metric("Tokens", " + ".join(str(len(tokens)) for tokens in answer.tokens[:4]))
    head_answers.draw(checkpoint, request, answer)
    with st.expander(f"Output: {answer.output_class}", expanded=True):
        parts.table(words.fields(answer), alt="Fields of the output with their shapes and axes")
if head:
    st.caption(literal(words.absent(overview.heads)))

asked = [
    request if answer else None,
    head_sections.pretraining(checkpoint, overview, request),
    head_sections.tokenization(checkpoint, request),
]
if any(asked):
    parts.elsewhere(checkpoint, *filter(None, asked))
