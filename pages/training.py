"""What would AdamW decay, and how would the learning rate change?"""

from __future__ import annotations

from functools import partial

from inspector.analyses.training.result import TrainingPlan
from inspector.view.blocks import Table
from pages._training import inputs, rates
from pages._ui import parts, session
from pages._ui.answer.rendering import PageView

checkpoint = session.opened()
parts.heading("training", checkpoint)
choice = inputs.choose()
plan: TrainingPlan = session.run(choice)
parts.warnings(plan.warnings)
PageView.of(
    plan,
    choice,
    name=checkpoint.name,
    instead={(Table, "learning-rates"): partial(rates.draw, plan, name=checkpoint.name)},
).show(opened_by={"at": "Learning rates", "find": "Groups"})
parts.elsewhere(checkpoint, choice)
