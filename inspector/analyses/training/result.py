"""Plan for training with AdamW: parameter groups, learning rates and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import numpy as np
    import pandas as pd

SCHEDULES = ("constant", "constant_with_warmup", "linear", "cosine", "cosine_with_restarts", "polynomial")
DECAYED, NOT_DECAYED, FROZEN = "decayed", "not decayed", "frozen"


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """One group of the optimizer: parameters with one weight decay."""

    weight_decay: float
    names: tuple[str, ...]  # of each tensor its first name, in the model's order
    parameters: int  # each shared tensor once
    nbytes: int  # as loaded


@dataclass(frozen=True, slots=True)
class SharedParameter:
    """A parameter with several names: the optimizer gets it once."""

    name: str  # the first one, under which it is in its group
    other_names: tuple[str, ...]  # in the model's order
    group: str  # DECAYED, NOT_DECAYED or FROZEN
    parameters: int


@dataclass(frozen=True, slots=True)
class DecayExample:
    """Effect of weight decay alone on the embedding matrix, without gradients."""

    name: str
    shape: tuple[int, ...]
    group: str  # DECAYED, NOT_DECAYED or FROZEN
    norm: float  # of the numbers of `rows` as one vector, as the file holds them
    first: float  # its first number
    first_after: float  # the same after one update at the full learning rate
    # One row a schedule, in the order of SCHEDULES: schedule, factor (what every number is
    # multiplied by over all steps, 0..1), norm (afterwards)
    after: pd.DataFrame
    rows: int  # all of the matrix, or of a large one the first


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """The parameters that AdamW decays, the memory that training takes, and six learning-rate schedules."""

    model_class: str
    learning_rate: float
    warmup_steps: int
    steps: int
    weight_decay: float
    groups: tuple[ParameterGroup, ...]  # decayed, not decayed
    frozen: ParameterGroup  # requires_grad is False: the optimizer does not get these
    shared: tuple[SharedParameter, ...]
    # One row a reason, largest first in each group: group, reason, tensors, parameters, nbytes,
    # example (a name)
    reasons: pd.DataFrame
    # One row a precision: setup, weights, gradients, moments, master_weights, total (bytes)
    memory: pd.DataFrame
    example: DecayExample | None
    # Name -> learning rate of each update, (steps,): the first one at place 0
    schedules: dict[str, np.ndarray]
    snippet: str  # Python that builds these groups
    warnings: tuple[str, ...]
    # One row a parameter, in the model's order: name, other_names (text), module (its class),
    # shape (text), dtype, parameters, nbytes, group, reason, in_file
    parameters: pd.DataFrame = local()

    def landmarks(self) -> tuple[int, ...]:
        """Updates at which the schedules differ, in order: start, warm-up, quarters, end."""
        last, warmup = self.steps - 1, self.warmup_steps
        quarters = [warmup + (self.steps - warmup) * part // 4 for part in range(4)]
        return tuple(sorted({min(place, last) for place in (0, 1, warmup // 2, *quarters, last)}))
