"""What AdamW would decay, what training takes, and how the learning rate would run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from inspector.analyses.training.figures import schedule_lines
from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import TrainingPlan
from inspector.report.content import Block, Code, Context, Drawn, Question, Said, Section, Tabled
from inspector.text import percent_text, plural

DECOUPLED = (
    "AdamW (Loshchilov & Hutter 2019) takes the decay out of the gradient: before each update, w "
    "becomes w − rate × decay × w. Biases and the scales of norms usually get none."
)


def ask(_: Context) -> tuple[Question, ...]:
    """The plan with the page's first numbers."""
    return (Question.of(TrainingRequest()),)


def show(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """Groups, memory and schedules."""
    plan: TrainingPlan = answers[0]
    decayed, kept = plan.groups
    total = decayed.parameters + kept.parameters
    share = percent_text(decayed.parameters / total) if total else "nothing"
    yield Said(
        f"As {plan.model_class}, {decayed.parameters:,} parameters in "
        f"{plural(len(decayed.names), 'tensor')} get weight decay {plan.weight_decay:g}, and "
        f"{kept.parameters:,} in {plural(len(kept.names), 'tensor')} get none: {share} of what is "
        f"trained decays. {DECOUPLED}"
    )
    yield Tabled("reasons", "Why they decay or not", plan.reasons)
    memory = plan.memory.rename(columns={"setup": "precision"})
    sizes = {name: f"{name}_nbytes" for name in memory.columns if name != "precision"}
    yield Tabled("memory", "What training takes, without activations", memory.rename(columns=sizes))
    rates = pd.DataFrame(plan.schedules)
    yield Drawn(
        "schedules",
        lambda theme: schedule_lines(
            rates,
            warmup_steps=plan.warmup_steps,
            theme=theme,
            title=f"Learning rate of each update, {context.name}",
            subtitle=f"{plural(plan.steps, 'update')}, highest rate {plan.learning_rate:g}",
        ),
        "Learning rate over the updates for six schedules",
    )
    yield Tabled("learning-rates", "Learning rates", rates.rename_axis("update").reset_index(), rows=8)
    yield Tabled("parameters", "Every parameter with its group", plan.parameters)
    yield Said("The same groups in Python:")
    yield Code(plan.snippet)


SECTION = Section("training", ask=ask, show=show)
