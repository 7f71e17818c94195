"""What AdamW would decay, what training takes, and how the learning rate would run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from inspector.analyses.training import words
from inspector.analyses.training.figures import schedule_lines
from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import TrainingPlan
from inspector.report.content import Block, Code, Context, Drawn, Listed, Said, Section, Tabled

ASKED = TrainingRequest()  # the plan with the page's first numbers


def show(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """Groups, memory and schedules."""
    plan: TrainingPlan = answers[0]
    yield Said(words.groups(plan))
    yield Listed((*words.shared(plan), *words.DECOUPLED))
    yield Tabled("reasons", "Reasons for decay or no decay", plan.reasons)
    yield Said(words.memory(plan))
    memory = plan.memory.rename(columns={"setup": "precision"})
    sizes = {name: f"{name}_nbytes" for name in memory.columns if name != "precision"}
    yield Tabled("memory", "Training memory without activations", memory.rename(columns=sizes))
    yield Said(words.MEMORY_NOTE)
    yield Drawn(
        "schedules",
        lambda theme: schedule_lines(plan, ASKED, name=context.name, theme=theme),
        "Learning rate over the updates for six schedules",
    )
    rates = pd.DataFrame(plan.schedules)
    yield Tabled("learning-rates", "Learning rates", rates.rename_axis("update").reset_index(), rows=8)
    yield Tabled("parameters", "Every parameter with its group", plan.parameters)
    yield Said("The same groups in Python:")
    yield Code(plan.snippet)


SECTION = Section("training", ask=lambda _: (ASKED,), show=show)
