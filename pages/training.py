"""What would AdamW decay, and how would the learning rate change?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.analyses.training import words
from inspector.analyses.training.figures import schedule_lines
from inspector.analyses.training.result import TrainingPlan
from inspector.text import bytes_text, literal, plural
from pages._training import inputs, tables
from pages._ui import finding, parts, session, table_files
from pages._ui.words import listed, paragraphs

checkpoint = session.opened()
parts.heading("training", checkpoint)

choice = inputs.choose()
plan: TrainingPlan = session.run(choice)
parts.warnings(plan.warnings)
decayed, kept = plan.groups

with st.container(horizontal=True):
    parts.count("Decayed", decayed.parameters, explanation=f"Parameters, in {plural(len(decayed.names), 'tensor')}.")
    parts.count("Not decayed", kept.parameters, explanation=f"Parameters, in {plural(len(kept.names), 'tensor')}.")
    if plan.frozen.names:
        parts.count("Frozen", plan.frozen.parameters, explanation="The optimizer does not get these.")
    st.metric(
        "Memory to train",
        bytes_text(plan.memory["total"].iloc[0]),
        help="In float32: weights, gradients and AdamW's two moments, without activations.",
    )

st.subheader("Six learning-rate schedules", anchor=False)
parts.chart(
    schedule_lines(plan, choice, name=checkpoint.name, theme=session.theme()),
    alt=(
        "Learning rate over the updates for six schedules; the table below lists chosen updates, the files have all "
        "of them"
    ),
)
rates = pd.DataFrame(plan.schedules)
rows = inputs.choose_rows(plan)
shown = rates.iloc[list(rows)].rename_axis("update").reset_index()
parts.table(tables.readable(shown), alt="Learning rates at the chosen updates")
table_files.offer(
    rates.rename_axis("update").reset_index(),
    name=f"{checkpoint.name}-learning-rates",
    label=f"All {plural(plan.steps, 'update')}",
)
with st.expander("The schedules, and why they warm up", expanded=True):
    st.markdown(f"{listed(words.schedules(choice))}\n\n{literal(words.WARM_UP)}")

st.subheader("Which parameters decay", anchor=False)
st.markdown(literal(words.groups(plan)))
parts.table(plan.reasons, alt="Numbers of parameters that decay and that do not, by reason")
st.markdown(listed(words.shared(plan)))
with st.expander("Why biases and norms are left out, and what the Trainer does"):
    st.markdown(paragraphs(words.RULE))
find = finding.field("Find parameters by name, module, group or reason", placeholder="such as LayerNorm or not decayed")
finding.listed(
    tables.found(plan.parameters, find),
    "parameter",
    of=f"{plural(len(plan.parameters), 'tensor')}, each once.",
    name=f"{checkpoint.name}-decay",
    alt="Every parameter with its group and the reason",
)

st.subheader("Effect of decay alone", anchor=False)
if plan.example:
    st.markdown(literal(words.example(plan, plan.example)))
    parts.table(tables.after_frame(plan.example), alt="Norm of the embedding matrix after decay alone, by schedule")
with st.expander("Why AdamW takes the decay out of the gradient"):
    st.markdown(paragraphs(words.DECOUPLED))

st.subheader("Training memory", anchor=False)
st.markdown(literal(words.memory(plan)))
parts.table(tables.memory_frame(plan.memory), alt="Bytes by precision and by use")
st.caption(literal(words.MEMORY_NOTE))

st.subheader("The same groups in Python", anchor=False)
st.code(plan.snippet, language="python", wrap_lines=True)
parts.elsewhere(checkpoint, choice)
