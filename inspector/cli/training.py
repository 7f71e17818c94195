"""The verb about training."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from inspector.analyses.training.result import TrainingPlan
from inspector.cli.answering import AsJson, Source, answer, app
from inspector.results.plain import to_json


@app.command()
def training(
    checkpoint: Source,
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", help="The highest one, above 1e-7, up to 1.")
    ] = 5e-5,
    warmup_steps: Annotated[
        int, typer.Option("--warmup-steps", help="Updates until it is reached.")
    ] = 100,
    steps: Annotated[int, typer.Option("--steps", help="Updates in all, 1 to 1,000,000.")] = 1_000,
    weight_decay: Annotated[
        float, typer.Option("--weight-decay", help="Of the group that decays, 0 to 1.")
    ] = 0.01,
    cycles: Annotated[
        int, typer.Option("--cycles", help="Of the cosine with restarts, 1 to 100.")
    ] = 1,
    power: Annotated[
        float, typer.Option("--power", help="Of the polynomial, above 0, up to 10.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """What would AdamW decay, and how would the learning rate run?"""
    answer(
        "training", checkpoint, as_json=as_json, then=_same if as_json else _for_people,
        learning_rate=learning_rate, warmup_steps=warmup_steps, steps=steps,
        weight_decay=weight_decay, cycles=cycles, power=power,
    )  # fmt: skip


def _same(plan: TrainingPlan) -> TrainingPlan:
    return plan


def _for_people(plan: TrainingPlan) -> dict[str, Any]:
    """Few updates in place of every one, and counts in place of names; --json has them all."""
    rows = [
        {"update": step} | {name: float(rates[step]) for name, rates in plan.schedules.items()}
        for step in plan.landmarks()
    ]
    plain = to_json(plan)
    for group in (*plain["groups"], plain["frozen"]):
        group["names"] = f"{len(group['names']):,} tensors"
    return plain | {"schedules": rows}
