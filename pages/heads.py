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
from pages._ui import inputs, parts, session

checkpoint = session.opened()
parts.heading("heads", checkpoint)

overview: Overview = session.run(OverviewRequest())
line, below = inputs.controls()
with line:
    head = head_asking.choose(overview)
    request = head_asking.ask(checkpoint, head, below)
if head:
    st.markdown(f"**{HEADS[head][0]}**: {literal(HEADS[head][1])}")
answer_place, side = parts.main_row()
with answer_place:
    answer: HeadAnswer | None = session.ask(request)
    if answer is not None:
        parts.warnings(answer.warnings)
        head_answers.draw(checkpoint, request, answer)
with side:
    if answer is not None:
        head_answers.say_how(answer)
    if head:
        st.caption(literal(words.absent(overview.heads)))

asked = [request] if answer else []
trained = overview.heads["masked_lm"] == "present"
names = ("Output", *(["Pre-training objective"] if trained else []), "Tokenization")
places = parts.in_tabs(*names, opened_by={"share": "Pre-training objective", "texts": "Tokenization"})
for name, place in zip(names, places, strict=True):
    if not place.open:
        continue
    with place:
        match name:
            case "Output":
                head_answers.draw_output(answer)
            case "Tokenization":
                asked += head_sections.tokenization(checkpoint, request)
            case _:
                asked += head_sections.pretraining(checkpoint, overview, request)
if asked:
    parts.elsewhere(checkpoint, *asked)
