"""What AdamW would decay, what training takes, and how the learning rate would run."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from inspector.analyses.training import words
from inspector.analyses.training.figures import schedule_lines
from inspector.analyses.training.frames import after_frame
from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import DecayExample, TrainingPlan
from inspector.report.content import Section
from inspector.view.blocks import Block, Bullets, Code, Facts, Figure, Grid, Sentence, Table
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
            ),
            _grid(plan),
        ),
        beside=(
            Facts(words.counts(plan) | words.memory_in_short(plan)),
            Table("reasons", "Reasons for decay or no decay", plan.reasons),
            *([Bullets(shared)] if (shared := words.shared(plan)) else []),
        ),
        tabs=(
            Tab("Learning rates", lambda: _rates(plan)),
            Tab("Schedules", lambda: [Bullets(words.schedules(request))]),
            Tab("Groups", lambda: [Table("parameters", "Every parameter with its group", plan.parameters)]),
            *([Tab("Decay", lambda: _decay(plan, example))] if (example := plan.example) else []),
            Tab("Memory", lambda: _memory(plan)),
            Tab("Python", lambda: [Sentence("The same groups in Python:"), Code(plan.snippet, "python")]),
        ),
        more="--json prints every update's rate and the Python code of the groups.",
        why=(
            Why(words.WHY_DECOUPLED, " ".join(words.DECOUPLED)),
            Why(words.WHY_RULE, " ".join(words.RULE)),
            Why(words.WHY_WARM_UP, words.WARM_UP),
        ),
    )


def _grid(plan: TrainingPlan) -> Grid:
    """The schedules as text: the learning rate of few updates."""
    steps = plan.landmarks()
    rates = {name: [float(rates[step]) for step in steps] for name, rates in plan.schedules.items()}
    return Grid(
        tuple(name.replace("_", " ") for name in rates),
        tuple(f"{step:,}" for step in steps),
        tuple(tuple(f"{100 * rate / plan.learning_rate:.3g} %" for rate in row) for row in rates.values()),
        tuple(tuple(rate / plan.learning_rate for rate in row) for row in rates.values()),
        f"share of the highest rate, {plan.learning_rate:g}, at the update above",
    )


def _decay(plan: TrainingPlan, example: DecayExample) -> Iterator[Block]:
    yield Sentence(words.example(plan, example))
    yield Table("after-decay", "Norm of the embedding matrix after decay alone, by schedule", after_frame(example))


def _memory(plan: TrainingPlan) -> Iterator[Block]:
    yield Sentence(words.memory(plan))
    memory = plan.memory.rename(columns={"setup": "precision"})
    sizes = {name: f"{name}_nbytes" for name in memory.columns if name != "precision"}
    yield Table("memory", "Training memory without activations", memory.rename(columns=sizes))
    yield Sentence(words.MEMORY_NOTE)


def _rates(plan: TrainingPlan) -> Iterator[Block]:
    rates = pd.DataFrame(plan.schedules)
    yield Table("learning-rates", "Learning rates", rates.rename_axis("update").reset_index(), rows=8)


SECTION = Section("training", ask=lambda _: (TrainingRequest(),))
