"""Say where a checkpoint's model would run, before any weight of it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.errors import RequestError
from inspector.models.build import TASKS
from inspector.progress import Progress
from inspector.results.placement import Placement

if TYPE_CHECKING:
    from inspector.models.checkpoint import Checkpoint

LANGUAGE = ("masked_lm", "causal_lm")  # heads that the pages run, if the file has them


def placement(
    checkpoint: Checkpoint,
    *,
    progress: Progress,
    task: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
) -> Placement:
    """Plan where a model runs, by its sizes.

    Args:
        checkpoint: Whose model it is.
        progress: Told what is being done.
        task: One of build.TASKS; None: its language-model head's where there is one, else the
            base model's.
        device: "auto" decides, "spread" spreads whatever the size, another is taken as it is.
        dtype: "auto" decides: the file's own half precision where float32 does not fit.

    Raises:
        CheckpointError: If no model can be built.
        NotInCheckpointError: If there is no config.json or no such task.
        RequestError: If there is no such task, device or dtype.
    """
    if task is not None and task not in TASKS:
        raise RequestError(f"There is no task {task!r}: use one of {', '.join(TASKS)}.")
    progress(None, "Adding up sizes")
    present = (head for head in LANGUAGE if checkpoint.heads[head] == "present")
    chosen = task or next(present, "base")
    plan = checkpoint.plan(chosen, device=device, dtype=dtype)  # type: ignore[arg-type]
    return plan.result()
