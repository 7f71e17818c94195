"""The question: how would AdamW train this model?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.errors import RequestError
from inspector.request import Request, option

LEAST_RATE = 1e-7  # where transformers' polynomial schedule ends: it must come from above


@dataclass(frozen=True)
class TrainingRequest(Request):
    """Options of `training`; nothing is trained."""

    verb = "training"

    learning_rate: float = option(
        5e-5, "Highest learning rate, after the warm-up", above=LEAST_RATE, most=1.0, step=1e-5
    )
    warmup_steps: int = option(
        100, "Updates until the highest rate is reached", label="Warm-up steps", least=0, step=10
    )
    steps: int = option(1_000, "Total number of updates", least=1, most=1_000_000, step=100)
    weight_decay: float = option(
        0.01,
        "Weight decay of the decayed group; the default is 0.01 in torch's AdamW and 0 in transformers' Trainer",
        least=0,
        most=1.0,
        step=0.01,
    )
    cycles: int = option(
        1,
        "Cycles of the cosine schedule with restarts; 1, transformers' default, is plain cosine",
        label="Cosine cycles",
        least=1,
        most=100,
    )
    power: float = option(
        1.0,
        "Power of the polynomial schedule; 1, transformers' default, is linear down to 1e-7",
        above=0,
        most=10.0,
        step=0.5,
    )

    def __post_init__(self) -> None:
        """Refuse numbers that training cannot use.

        Raises:
            RequestError: If one is out of its bounds, or the warm-up is longer than the training.
        """
        super().__post_init__()
        if self.warmup_steps > self.steps:
            raise RequestError(
                f"The warm-up takes {self.warmup_steps:,} steps, but the whole training has {self.steps:,}: make the "
                "warm-up shorter, or the training longer."
            )
