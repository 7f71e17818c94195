"""What a terminal shows of a training plan."""

from __future__ import annotations

from typing import Any

from inspector.analyses.training.result import TrainingPlan
from inspector.results.plain import to_json


def in_short(plan: TrainingPlan) -> dict[str, Any]:
    """Few updates in place of every one, and counts in place of names; --json has them all."""
    rows = [
        {"update": step} | {name: float(rates[step]) for name, rates in plan.schedules.items()}
        for step in plan.landmarks()
    ]
    plain = to_json(plan)
    for group in (*plain["groups"], plain["frozen"]):
        group["names"] = f"{len(group['names']):,} tensors"
    return plain | {"schedules": rows}
