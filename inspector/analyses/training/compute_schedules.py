"""The learning rate of every update, from transformers' own schedulers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import SCHEDULES
from inspector.models.build import quiet
from inspector.progress import Progress


def learning_rates(request: TrainingRequest, progress: Progress) -> dict[str, np.ndarray]:
    """Ask each of the six schedulers for the learning rate of every update.

    A scheduler made by `transformers.get_scheduler` for a real AdamW multiplies the optimizer's
    rate by a function of the step. That function is called for every step; to walk there with
    `scheduler.step()` gives the same numbers (tested) a hundred times as slowly.

    Returns:
        Name -> float64 array, (steps,), in the order of SCHEDULES.
    """
    quiet()
    from transformers import get_scheduler  # which imports peft, where it is installed

    steps = request.steps
    specific = {"cosine_with_restarts": {"num_cycles": request.cycles}, "polynomial": {"power": request.power}}
    found = {}
    for number, name in enumerate(SCHEDULES):
        progress(number / len(SCHEDULES), f"Computing the {name.replace('_', ' ')} schedule")
        optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=request.learning_rate)
        scheduler: Any = get_scheduler(
            name, optimizer, request.warmup_steps, steps, scheduler_specific_kwargs=specific.get(name)
        )
        (base,), (factor,) = scheduler.base_lrs, scheduler.lr_lambdas
        found[name] = np.fromiter((base * factor(step) for step in range(steps)), float, steps)
    return found


def shrinkage(rates: np.ndarray, weight_decay: float) -> float:
    """What decay alone multiplies a weight by: the product of 1 - rate × decay, 0..1."""
    return math.prod((1 - rates * weight_decay).tolist())
