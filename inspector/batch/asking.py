"""What comes of each of many checkpoints that are asked the same question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from inspector.errors import CheckpointError, InspectorError, NotInCheckpointError, RequestError
from inspector.results.checkpoint import Opened
from inspector.store.origins.snapshots import Snapshot

Status = Literal["done", "refused", "failed"]
REFUSALS = (CheckpointError, NotInCheckpointError, RequestError)


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """What came of one checkpoint."""

    snapshot: Snapshot
    status: Status  # "refused": the input's fault; "failed": the worker's, so it may be tried again
    result: Any = None  # of "done"
    error: str | None = None  # one sentence, of the others
    opened: Opened | None = None  # None: it came to nothing before that, or was known


def without_answer(snapshot: Snapshot, error: InspectorError, opened: Opened | None = None) -> BatchEntry:
    """What came of a checkpoint that an error stands for."""
    return BatchEntry(snapshot, "refused" if isinstance(error, REFUSALS) else "failed", error=str(error), opened=opened)
