"""The learning rate of every update, from transformers' own schedulers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from transformers import get_scheduler

from inspector.analyses.training.result import SCHEDULES
from inspector.errors import RequestError
from inspector.progress import Progress

MOST_STEPS = 1_000_000
MOST_CYCLES = 100
HIGHEST_POWER = 10.0
LEAST_RATE = 1e-7  # where transformers' polynomial schedule ends: it must come from above


def check_request(
    *,
    learning_rate: float,
    warmup_steps: int,
    steps: int,
    weight_decay: float,
    cycles: int,
    power: float,
) -> None:
    """Refuse numbers that no training could use.

    Raises:
        RequestError: With one sentence, on the first of them.
    """
    refusals = {
        f"{steps:,} steps are asked for: give 1 to {MOST_STEPS:,}.": 1 <= steps <= MOST_STEPS,
        f"{warmup_steps:,} warm-up steps are asked for: give 0 or more.": warmup_steps >= 0,
        f"The warm-up takes {warmup_steps:,} steps and the whole training {steps:,}: make the "
        "warm-up shorter, or the training longer.": warmup_steps <= steps,
        f"The learning rate is {learning_rate:g}: give one above {LEAST_RATE:g}, up to 1.":
            LEAST_RATE < learning_rate <= 1,
        f"The weight decay is {weight_decay:g}: give one from 0 to 1.": 0 <= weight_decay <= 1,
        f"{cycles:,} cosine cycles are asked for: give 1 to {MOST_CYCLES}.":
            1 <= cycles <= MOST_CYCLES,
        f"The power is {power:g}: give one above 0, up to {HIGHEST_POWER:g}.":
            0 < power <= HIGHEST_POWER,
    }  # fmt: skip
    for sentence, fits in refusals.items():
        if not fits:  # NaN fits nowhere
            raise RequestError(sentence)


def learning_rates(
    *,
    learning_rate: float,
    warmup_steps: int,
    steps: int,
    cycles: int,
    power: float,
    progress: Progress,
) -> dict[str, np.ndarray]:
    """Ask each of the six schedulers for the learning rate of every update.

    A scheduler made by `transformers.get_scheduler` for a real AdamW multiplies the optimizer's
    rate by a function of the step. That function is called for every step; to walk there with
    `scheduler.step()` gives the same numbers (tested) a hundred times as slowly.

    Args:
        learning_rate: The highest one.
        warmup_steps: Updates before it is reached, 0..steps.
        steps: Updates in all, 1..MOST_STEPS.
        cycles: Of the cosine with restarts; 1 is transformers' default.
        power: Of the polynomial; 1 is transformers' default.
        progress: Told which schedule is computed.

    Returns:
        Name -> float64 array, (steps,), in the order of SCHEDULES.
    """
    specific = {"cosine_with_restarts": {"num_cycles": cycles}, "polynomial": {"power": power}}
    found = {}
    for number, name in enumerate(SCHEDULES):
        progress(number / len(SCHEDULES), f"Computing the {name.replace('_', ' ')} schedule")
        optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=learning_rate)
        scheduler: Any = get_scheduler(
            name, optimizer, warmup_steps, steps, scheduler_specific_kwargs=specific.get(name)
        )
        (base,), (factor,) = scheduler.base_lrs, scheduler.lr_lambdas
        found[name] = np.fromiter((base * factor(step) for step in range(steps)), float, steps)
    return found


def shrinkage(rates: np.ndarray, weight_decay: float) -> float:
    """What decay alone multiplies a weight by: the product of 1 - rate × decay, 0..1."""
    return math.prod((1 - rates * weight_decay).tolist())
