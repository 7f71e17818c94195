"""Say where a checkpoint's model would run, before any weight of it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.analyses.placement.request import PlacementRequest
from inspector.progress import Progress
from inspector.request import answers
from inspector.results.placement import Placement

if TYPE_CHECKING:
    from inspector.models.checkpoint import Checkpoint

LANGUAGE = ("masked_lm", "causal_lm")  # heads that the pages run, if the file has them


@answers(PlacementRequest)
def placement(checkpoint: Checkpoint, request: PlacementRequest, *, progress: Progress) -> Placement:
    """Plan where a model runs, by its sizes.

    Raises:
        CheckpointError: If no model can be built.
        NotInCheckpointError: If there is no config.json or no such head.
        RequestError: If this machine has no such device.
    """
    progress(None, "Adding up sizes")
    chosen = request.task or _task(checkpoint)
    plan = checkpoint.plan(chosen, device=request.device, dtype=request.dtype)
    return plan.result()


def _task(checkpoint: Checkpoint) -> str:
    """The head that the pages run, else the base model; an encoder and a decoder may have none without a head."""
    from inspector.models.build import find_class

    present = (head for head in LANGUAGE if checkpoint.heads[head] == "present")
    return next(present, "base" if find_class(checkpoint.config, "base") else "seq2seq_lm")
