"""Inputs of the Training page, all of them in the address bar."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import TrainingPlan
from inspector.text import literal
from pages._ui import inputs, options

MOST_ROWS = 50


def choose() -> TrainingRequest:
    """Ask for the numbers; without numbers that fit together the page ends here."""
    line, _ = inputs.controls()
    with line:
        rate = options.ask(TrainingRequest, "learning_rate", format="%g")
        numbers = {name: options.ask(TrainingRequest, name) for name in ("warmup_steps", "steps")}
        decay = options.ask(TrainingRequest, "weight_decay", format="%g")
        with inputs.folded_options():
            cycles = options.ask(TrainingRequest, "cycles")
            power = options.ask(TrainingRequest, "power", format="%g")
    return options.make(TrainingRequest, learning_rate=rate, weight_decay=decay, cycles=cycles, power=power, **numbers)


def choose_rows(plan: TrainingPlan) -> tuple[int, ...]:
    """Ask at which updates the table shows the rates.

    Returns:
        Places of updates, the first at 0, in order.
    """
    usual = plan.landmarks()
    text = st.text_input(
        "Updates in the table",
        key="at",
        bind="query-params",
        placeholder=", ".join(map(str, usual)),
        help="Comma-separated; the first update is 0",
    )
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in parts if not _is_update(part, plan.steps)]
    if wrong:
        st.error(
            f"There is no update {literal(wrong[0][:20])}: enter comma-separated numbers from 0 to {plan.steps - 1}.",
            icon=":material/error:",
        )
        return usual
    if len(parts) > MOST_ROWS:
        st.error(
            f"You entered {len(parts)} updates, but the table shows at most {MOST_ROWS}. The files below have all of "
            "them.",
            icon=":material/error:",
        )
        return usual
    return tuple(sorted({int(part) for part in parts})) or usual


def _is_update(text: str, steps: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 8 and int(text) < steps
