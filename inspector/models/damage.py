"""Refuse to read an answer from a model that answers with NaN, and name what is damaged."""

from __future__ import annotations

import torch

from inspector.errors import CheckpointError
from inspector.models.running import Loaded


def refuse_damaged(name: str, loaded: Loaded, scores: torch.Tensor) -> None:
    """Refuse scores of which no probability can be made.

    Args:
        scores: (..., choices); minus infinity rules a choice out and is no damage.

    Raises:
        CheckpointError: If they hold NaN or infinity.
    """
    if not scores.float().logsumexp(dim=-1).isfinite().all():
        raise damaged(name, loaded)


def damaged(name: str, loaded: Loaded) -> CheckpointError:
    """What to raise where a model answers with NaN: which tensor holds it, or that the dtype is too small."""
    if loaded.stream or loaded.spread:
        why = f"its weights are damaged, or they overflow in {loaded.precision}; run the checks to find out which."
    elif tensor := _first_damaged(loaded):
        why = f"its {tensor} contains NaN or infinity; the checks list every damaged tensor. Open an undamaged copy."
    elif loaded.dtype == torch.float32:
        why = "its weights contain neither, but its activations overflow on this input; try another text."
    else:
        why = f"its weights contain neither, so its activations overflow in {loaded.precision}; use float32."
    return CheckpointError(f"{name} returns NaN or infinity, so there is no answer to show: {why}")


def _first_damaged(loaded: Loaded) -> str | None:
    """The first parameter that holds a number that is none."""
    named = loaded.model.named_parameters()
    return next((name for name, each in named if not torch.isfinite(each).all()), None)
