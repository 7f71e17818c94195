"""Ask many checkpoints, several at once; what one of them does ends none of the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from typing import Any

from inspector.batch.asking import BatchEntry, without_answer
from inspector.errors import CancelledError, InspectorError
from inspector.results.checkpoint import Opened
from inspector.serving.engine.protocol import Engine, Job
from inspector.serving.notice import part_of_begun_work, refuse_new_work
from inspector.store.origins.snapshots import Snapshot

Wait = Callable[[Job[Any]], Any]  # for a job's result; a batch that is cancelled cancels the job
Ask = Callable[[Snapshot, Opened, Wait], Any]


class Batch:
    """One question to many checkpoints through any engine.

    Args:
        ask: Asks one that is open.
        release: True: give back the memory of each when it has answered.
    """

    def __init__(
        self, engine: Engine, snapshots: Sequence[Snapshot], ask: Ask, *, workers: int, release: bool = False
    ) -> None:
        self._engine = engine
        self._snapshots = snapshots
        self._ask = ask
        self._workers = workers
        self._release = release
        self._lock = threading.Lock()
        self._cancelled = False
        refuse_new_work()
        with part_of_begun_work():
            self._context = copy_context()  # of whoever began it: its jobs wait in that tab
        self._jobs: set[Job[Any]] = set()
        self._busy: dict[int, str] = {}  # number -> name of what is being asked

    @property
    def busy(self) -> tuple[str, ...]:
        """Names of the checkpoints that are being asked, those asked for longest first."""
        with self._lock:
            return tuple(self._busy.values())

    def answers(self) -> Iterator[BatchEntry]:
        """Ask; each entry is given as soon as it is there.

        Leaving the iteration cancels the rest. What was cancelled has no entry.
        """
        pool = ThreadPoolExecutor(max(1, self._workers), thread_name_prefix="batch")
        futures = [
            pool.submit(self._context.copy().run, self._answer, number, snapshot)
            for number, snapshot in enumerate(self._snapshots)
        ]
        try:
            for future in as_completed(futures):
                entry = future.result()
                if entry is not None:
                    yield entry
        finally:
            self.cancel()
            pool.shutdown(cancel_futures=True)

    def cancel(self) -> None:
        """Stop all that is under way or waits; may be called from any thread."""
        with self._lock:
            self._cancelled = True
            jobs = tuple(self._jobs)
        for job in jobs:
            self._context.copy().run(job.cancel)

    def _answer(self, number: int, snapshot: Snapshot) -> BatchEntry | None:
        with self._lock:
            if self._cancelled:
                return None
            self._busy[number] = snapshot.name
        opened = None
        try:
            opened = self._wait(self._engine.open(snapshot.reference, whole=True))
            return BatchEntry(snapshot, "done", self._ask(snapshot, opened, self._wait), opened=opened)
        except InspectorError as error:
            if self._cancelled and isinstance(error, CancelledError):  # else somebody else stopped a job that we share
                return None
            return without_answer(snapshot, error, opened)
        finally:
            if opened and self._release:
                self._engine.release(opened.fingerprint)
            with self._lock:
                del self._busy[number]

    def _wait(self, job: Job[Any]) -> Any:
        with self._lock:
            self._jobs.add(job)
            cancelled = self._cancelled
        if cancelled:
            job.cancel()
        try:
            return job.result()
        finally:
            with self._lock:
                self._jobs.discard(job)
