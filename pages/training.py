"""What would AdamW decay, and how would the learning rate change?"""

from __future__ import annotations

import streamlit as st

from inspector.analyses.training import words
from inspector.analyses.training.figures import schedule_lines
from inspector.analyses.training.result import TrainingPlan
from inspector.text import literal
from pages._training import inputs, tables
from pages._training import parts as training_parts
from pages._ui import parts, session

HEIGHT = 440  # pixels

checkpoint = session.opened()
parts.heading("training", checkpoint)

choice = inputs.choose()
plan: TrainingPlan = session.run(choice)
parts.warnings(plan.warnings)
picture, side = parts.main_row()
with picture:
    parts.chart(
        schedule_lines(plan, choice, name=checkpoint.name, theme=session.theme()),
        alt=(
            "Learning rate over the updates for six schedules; the tab Rates lists chosen updates, its files have all "
            "of them"
        ),
        height=HEIGHT,
    )
with side:
    training_parts.count(plan)
rates, groups, decay, memory, python = parts.in_tabs(
    "Rates", "Groups", "Decay", "Memory", "Python", opened_by={"at": "Rates", "find": "Groups"}
)
if rates.open:
    with rates:
        training_parts.draw_rates(checkpoint, plan, choice)
if groups.open:
    with groups:
        training_parts.draw_groups(checkpoint, plan)
if decay.open:
    with decay:
        training_parts.draw_decay(plan)
if memory.open:
    with memory:
        st.markdown(literal(words.memory(plan)))
        parts.table(tables.memory_frame(plan.memory), alt="Bytes by precision and by use")
        st.caption(literal(words.MEMORY_NOTE))
if python.open:
    with python:
        st.caption("The same groups in Python:")
        st.code(plan.snippet, language="python", wrap_lines=True)
parts.elsewhere(checkpoint, choice)
