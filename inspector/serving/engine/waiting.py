"""Jobs that wait for a worker, and which of them one worker takes at once."""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Iterator
from operator import attrgetter

from inspector.serving.engine.jobs import LocalJob
from inspector.serving.engine.wire import RunRequest

MAX_BATCH = 64  # jobs that a worker takes at once
PATIENCE_SECONDS = 5.0


class Waiting:
    """Jobs without a worker, in order of arrival; the engine guards every call by its lock.

    Args:
        patience: Seconds that a job waits while a loaded model serves those that came after it.
    """

    def __init__(self, *, patience: float = PATIENCE_SECONDS) -> None:
        self._patience = patience
        self._jobs: list[LocalJob] = []

    def __iter__(self) -> Iterator[LocalJob]:
        """Those that wait now, whatever happens to them meanwhile."""
        return iter(tuple(self._jobs))

    def add(self, job: LocalJob) -> None:
        """Let a job wait, before those that came after it."""
        insort(self._jobs, job, key=attrgetter("asked"))

    def discard(self, job: LocalJob) -> None:
        """Let a job wait no longer, if it does."""
        if job in self._jobs:
            self._jobs.remove(job)

    def take(self, job: LocalJob) -> tuple[LocalJob, ...]:
        """Take a job, and those that can be answered together with it: at most 64 in all."""
        others = [other for other in self._jobs if other is not job and other.batch_key == job.batch_key is not None]
        taken = (job, *others[: MAX_BATCH - 1])
        for each in taken:
            self._jobs.remove(each)
        return taken

    def wanted(self, job: LocalJob) -> set[str]:
        """Checkpoints that others than a job wait for, unless it has been patient enough."""
        if time.monotonic() - job.asked > self._patience:
            return set()
        return {other.request.fingerprint for other in self._jobs if isinstance(other.request, RunRequest)}
