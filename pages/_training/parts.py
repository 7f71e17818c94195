"""Tabs of the Training page: rates at chosen updates, the groups that decay, and the effect of decay."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.analyses.training import words
from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import TrainingPlan
from inspector.results.checkpoint import Opened
from inspector.text import bytes_text, literal, plural
from pages._training import inputs, tables
from pages._ui import finding, parts, table_files
from pages._ui.words import listed, paragraphs


def count(plan: TrainingPlan) -> None:
    """Count what decays and what does not, and the memory that training takes."""
    decayed, kept = plan.groups
    with st.container(horizontal=True):
        parts.count(
            "Decayed", decayed.parameters, explanation=f"Parameters, in {plural(len(decayed.names), 'tensor')}."
        )
        parts.count("Not decayed", kept.parameters, explanation=f"Parameters, in {plural(len(kept.names), 'tensor')}.")
        if plan.frozen.names:
            parts.count("Frozen", plan.frozen.parameters, explanation="The optimizer does not get these.")
        st.metric(
            "Memory to train",
            bytes_text(plan.memory["total"].iloc[0]),
            help="In float32: weights, gradients and AdamW's two moments, without activations.",
        )
    st.markdown(literal(words.groups(plan)))


def draw_rates(checkpoint: Opened, plan: TrainingPlan, choice: TrainingRequest) -> None:
    """List the rates at chosen updates, and say what each schedule does."""
    rates = pd.DataFrame(plan.schedules)
    rows = inputs.choose_rows(plan)
    shown = rates.iloc[list(rows)].rename_axis("update").reset_index()
    parts.table(tables.readable(shown), alt="Learning rates at the chosen updates")
    table_files.offer(
        rates.rename_axis("update").reset_index(),
        name=f"{checkpoint.name}-learning-rates",
        label=f"All {plural(plan.steps, 'update')}",
    )
    with st.expander("The schedules, and why they warm up"):
        st.markdown(f"{listed(words.schedules(choice))}\n\n{literal(words.WARM_UP)}")


def draw_groups(checkpoint: Opened, plan: TrainingPlan) -> None:
    """List which parameters decay, and why."""
    parts.table(plan.reasons, alt="Numbers of parameters that decay and that do not, by reason")
    st.markdown(listed(words.shared(plan)))
    with st.expander("Why biases and norms are left out, and what the Trainer does"):
        st.markdown(paragraphs(words.RULE))
    find = finding.field(
        "Find parameters by name, module, group or reason", placeholder="such as LayerNorm or not decayed"
    )
    finding.listed(
        tables.found(plan.parameters, find),
        "parameter",
        of=f"{plural(len(plan.parameters), 'tensor')}, each once.",
        name=f"{checkpoint.name}-decay",
        alt="Every parameter with its group and the reason",
    )


def draw_decay(plan: TrainingPlan) -> None:
    """Show what decay alone does to the embedding matrix."""
    if plan.example:
        st.markdown(literal(words.example(plan, plan.example)))
        parts.table(tables.after_frame(plan.example), alt="Norm of the embedding matrix after decay alone, by schedule")
    st.markdown(f"**Why AdamW takes the decay out of the gradient**\n\n{paragraphs(words.DECOUPLED)}")
