"""Inputs of the Training page, all of them in the address bar."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from inspector.analyses.training.result import TrainingPlan
from pages._ui.words import literal

MOST_ROWS = 50
CYCLES, POWER = 3, 2.0  # where transformers' own default of 1 would draw one line over another


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked for."""

    learning_rate: float
    warmup_steps: int
    steps: int
    weight_decay: float
    cycles: int
    power: float

    def parameters(self) -> dict[str, Any]:
        """For the analysis."""
        return asdict(self)

    def options(self) -> list[str]:
        """The same for the command line."""
        pairs = asdict(self).items()
        return [f"--{name.replace('_', '-')}={value:.12g}" for name, value in pairs]


def choose() -> Choice:
    """Ask for the numbers; the analysis says which of them do not fit."""
    with st.container(horizontal=True):
        rate = st.number_input("Learning rate", value=5e-5, step=1e-5, format="%g", key="rate",
                               bind="query-params", help="The highest one, after the "
                               "warm-up: above 1e-7, up to 1")  # fmt: skip
        warmup = st.number_input("Warm-up steps", value=100, step=10, key="warmup",
                                 bind="query-params",
                                 help="Updates until the highest rate is reached")  # fmt: skip
        steps = st.number_input("Steps", value=1_000, step=100, key="steps", bind="query-params",
                                help="Updates in all: 1 to 1,000,000")  # fmt: skip
        decay = st.number_input("Weight decay", value=0.01, step=0.01, format="%g", key="decay",
                                bind="query-params", help="0 to 1. torch's AdamW starts with 0.01, "
                                "transformers' Trainer with 0")  # fmt: skip
    with st.expander("Options", icon=":material/tune:"), st.container(horizontal=True):
        cycles = st.number_input("Cosine cycles", value=CYCLES, step=1, key="cycles",
                                 bind="query-params", help="Of the cosine with restarts. With 1, "
                                 "transformers' default, it is the cosine itself")  # fmt: skip
        power = st.number_input("Power", value=POWER, step=0.5, format="%g", key="power",
                                bind="query-params", help="Of the polynomial. With 1, "
                                "transformers' default, it is the linear one but for its last "
                                "1e-7")  # fmt: skip
    return Choice(float(rate), int(warmup), int(steps), float(decay), int(cycles), float(power))


def choose_rows(plan: TrainingPlan) -> tuple[int, ...]:
    """Ask at which updates the table shows the rates.

    Returns:
        Places of updates, the first at 0, in order.
    """
    usual = plan.landmarks()
    text = st.text_input("Updates in the table", key="at", bind="query-params",
                         placeholder=", ".join(map(str, usual)),
                         help="The first one is 0; comma-separated")  # fmt: skip
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in parts if not _is_update(part, plan.steps)]
    if wrong:
        st.error(
            f"There is no update {literal(wrong[0][:20])}: write numbers from 0 to "
            f"{plan.steps - 1}, with commas between them.",
            icon=":material/error:",
        )
        return usual
    if len(parts) > MOST_ROWS:
        st.error(f"{len(parts)} updates are asked for: the table shows {MOST_ROWS} at most, the "
                 "files below all of them.", icon=":material/error:")  # fmt: skip
        return usual
    return tuple(sorted({int(part) for part in parts})) or usual


def _is_update(text: str, steps: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 8 and int(text) < steps
