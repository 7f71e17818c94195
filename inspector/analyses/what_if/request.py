"""The question: which ties break when the model is changed?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.analyses.what_if.result import CHANGES, EXAMPLE, OPTIMIZERS
from inspector.request import Request, option


@dataclass(frozen=True)
class WhatIfRequest(Request):
    """Options of `whatif`; it changes a copy in memory, never the checkpoint."""

    verb = "whatif"

    change: str = option("untie", "Change to make to a copy of the model", choices=tuple(CHANGES))
    text: str = option(
        EXAMPLE, "Text to train the copy on; leave it empty for no training", label="Text that the copy is trained on"
    )
    steps: int = option(1, "Number of updates; 0 for no training", least=0, most=20)
    learning_rate: float = option(5e-5, "Learning rate of every update", above=0, most=1.0, step=1e-5)
    optimizer: str = option("adamw", "Optimizer of the copy, without weight decay or momentum", choices=OPTIMIZERS)
