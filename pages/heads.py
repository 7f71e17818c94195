"""What does each task head answer?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.heads.result import HeadAnswer, TokenLabels
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.request import Request
from inspector.view.blocks import Table
from pages._heads import asking as head_asking
from pages._heads import marks, sections
from pages._ui import inputs, parts, session
from pages._ui.answer.rendering import PageView, draw_tabs

checkpoint = session.opened()
parts.heading("heads", checkpoint)

overview: Overview = session.run(OverviewRequest())
line, below = inputs.controls()
with line:
    head = head_asking.choose(overview)
    request = head_asking.ask(checkpoint, head, below)
answer: HeadAnswer | None = session.ask(request)
asked: list[Request] = [request] if answer else []


def draw_spans(table: Table) -> None:
    marks.spans(request.text, table.frame)
    page.table(table)


def draw_more(_: None) -> None:
    """Draw what no report repeats: where there is more, and how long the pass took."""
    if answer and answer.head == "masked_lm":
        parts.page_link("masked_lm")
    if answer:
        st.caption(f"Forward pass: {answer.milliseconds:.1f} ms")


tabs = {"Tokenization": lambda: asked.extend(sections.tokenization(checkpoint, request))}
if overview.heads["masked_lm"] == "present":
    tabs["Pre-training objective"] = lambda: asked.extend(sections.pretraining(checkpoint, overview, request))
opened_by = {"share": "Pre-training objective", "texts": "Tokenization"}
if answer is None:
    draw_tabs(tabs, opened_by=opened_by)
else:
    parts.warnings(answer.warnings)
    labeled = isinstance(answer.result, TokenLabels)
    page = PageView.of(answer, request, name=checkpoint.name, instead={(Table, "spans"): draw_spans} if labeled else {})
    page.answer(draw_more)
    page.below(tabs, opened_by=opened_by)
if asked:
    parts.elsewhere(checkpoint, *asked)
