"""A batch as one job, for a page that waits, shows how far it is, and may stop it."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable
from contextvars import copy_context

from inspector.batch.asking import BatchEntry
from inspector.errors import CancelledError, InspectorError
from inspector.serving.engine.batch import Batch
from inspector.serving.engine.protocol import Progress, Status
from inspector.serving.engine.shares import Waiters


class BatchJob:
    """Implements the engine protocol's Job; what has been answered so far is there at any time.

    Args:
        count: Checkpoints in it, known ones included.
        known: What came of those that were asked before.
    """

    def __init__(self, batch: Batch, count: int, *, known: Iterable[BatchEntry] = ()) -> None:
        self.id = secrets.token_urlsafe(16)
        self._batch = batch
        self._count = count
        self._entries = [*known]
        self._status: Status = "running"
        self._error: Exception | None = None
        self._settled = threading.Event()
        self._waiters = Waiters()
        threading.Thread(target=copy_context().run, args=(self._run,), name="batch job", daemon=True).start()

    @property
    def status(self) -> Status:
        """Where the job stands."""
        return self._status

    @property
    def partial(self) -> tuple[BatchEntry, ...]:
        """What has been answered so far, in the order of the answers; it stays when the job is stopped."""
        return tuple(self._entries)

    @property
    def progress(self) -> Progress:
        """How many have answered, and one that is being asked."""
        done = len(self._entries)
        busy = self._batch.busy
        now = f"; reading {busy[0]}" if busy else ""
        return Progress(done / max(self._count, 1), f"{done:,} of {self._count:,} snapshots{now}")

    def result(self, timeout: float | None = None) -> tuple[BatchEntry, ...]:
        """Wait until every checkpoint has answered; see the protocol."""
        if not self._settled.wait(timeout):
            raise TimeoutError(f"{len(self._entries)} of {self._count} snapshots are done.")
        if self._status == "cancelled":
            raise CancelledError("Stopped. The finished results are kept.")
        if self._status == "failed":
            raise InspectorError("The snapshots could not be read: try again.") from self._error
        return self.partial

    def join(self) -> None:
        """Wait for the job as well, in the tab of this thread."""
        self._waiters.join()

    def cancel(self) -> None:
        """Stop waiting; see the protocol."""
        if self._waiters.leave() and not self._settled.is_set():
            self._status = "cancelled"
            self._batch.cancel()
            self._settled.set()

    def _run(self) -> None:
        try:
            for entry in self._batch.answers():
                self._entries.append(entry)
        except Exception as error:
            self._error = error  # for `result`; the thread's own traceback goes to the log
            self._settle("failed")
            raise
        self._settle("done")

    def _settle(self, status: Status) -> None:
        if not self._settled.is_set():
            self._status = status
            self._settled.set()
