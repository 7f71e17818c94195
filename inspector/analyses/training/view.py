"""What AdamW would decay, what training takes, and how the learning rate would run."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from inspector.analyses.training import words
from inspector.analyses.training.figures import schedule_lines
from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import TrainingPlan
from inspector.report.content import Section
from inspector.view.blocks import Block, Bullets, Code, Figure, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View, Why


def view(plan: TrainingPlan, request: TrainingRequest, *, name: str) -> View:
    """Schedules, groups and memory."""
    return View(
        Headline(words.groups(plan)),
        picture=Picture(
            Figure(
                "schedules",
                lambda theme: schedule_lines(plan, request, name=name, theme=theme),
                "Learning rate over the updates for six schedules",
            )
        ),
        beside=(Table("reasons", "Reasons for decay or no decay", plan.reasons), *_shared(plan)),
        tabs=(
            Tab("Memory", lambda: _memory(plan)),
            Tab("Learning rates", lambda: _rates(plan, request)),
            Tab("Groups", lambda: [Table("parameters", "Every parameter with its group", plan.parameters)]),
            Tab("Python", lambda: [Sentence("The same groups in Python:"), Code(plan.snippet)]),
        ),
        why=(Why(words.WHY_DECOUPLED, " ".join(words.DECOUPLED)),),
    )


def _shared(plan: TrainingPlan) -> Iterator[Block]:
    if shared := words.shared(plan):
        yield Bullets(shared)


def _memory(plan: TrainingPlan) -> Iterator[Block]:
    yield Sentence(words.memory(plan))
    memory = plan.memory.rename(columns={"setup": "precision"})
    sizes = {name: f"{name}_nbytes" for name in memory.columns if name != "precision"}
    yield Table("memory", "Training memory without activations", memory.rename(columns=sizes))
    yield Sentence(words.MEMORY_NOTE)


def _rates(plan: TrainingPlan, request: TrainingRequest) -> Iterator[Block]:
    yield Bullets(words.schedules(request))
    rates = pd.DataFrame(plan.schedules)
    yield Table("learning-rates", "Learning rates", rates.rename_axis("update").reset_index(), rows=8)


SECTION = Section("training", ask=lambda _: (TrainingRequest(),))
