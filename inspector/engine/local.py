"""The local engine: every open checkpoint in a process of its own on this machine.

Why not loky, joblib or pebble: their pools hand any task to any process, and what matters here is
one process for each checkpoint (its model stays loaded, ending it gives the memory back, and a
hostile file meets nobody else), with progress while it works and an end by cancel, memory or time
that leaves the other processes alone. `multiprocessing`'s own spawn is out as well: started from
Streamlit it runs the app a second time in the child. So a worker is a module of its own, started
by subprocess, and talks over a `multiprocessing.connection` pipe that only the two of them hold.

A worker gets one request at a time. Whatever else waits, waits here, in the order of arrival (but
a loaded model first serves those who wait for it): when a worker dies, only the request that it
was at has failed.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterable
from typing import Any

from inspector import errors
from inspector.catalog import CATALOG, Analysis
from inspector.engine import limits
from inspector.engine.jobs import JobBook, LocalJob, freeze
from inspector.engine.pool import Pool
from inspector.engine.process import WorkerProcess
from inspector.engine.protocol import Progress, WorkerStatus
from inspector.engine.wire import (
    Answer,
    Failure,
    OpenRequest,
    Ready,
    RunRequest,
    Setup,
    Warm,
    WorkerFunctions,
)
from inspector.errors import (
    CancelledError,
    CheckpointError,
    InspectorError,
    RequestError,
    WorkerError,
)
from inspector.results import Opened
from inspector.settings import Settings
from inspector.store.reference import CheckpointRef

WATCH_SECONDS = 0.1  # between two looks at the memory of busy workers
SPARE_SECONDS = 1.0  # of calm before a spare is started
CLOSE_SECONDS = 5.0
BOOT_SECONDS = 60.0  # for a process to start, which is not the request's time
PATIENCE_SECONDS = 5.0  # a job waits while a loaded model serves those that came after it
FIXED = ("demo", "upload", "incoming")  # references that name the same bytes for ever


class LocalEngine:
    """Runs staging and analyses in worker processes; every method may be called from any thread.

    Args:
        settings: Limits, and where the store is.
        restrict_paths: True: folders are opened under the allowed roots only.
        spare: True: keep one process warm for the next checkpoint.
        catalog: The analyses that may be asked for.
        functions: What the workers import.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        restrict_paths: bool = True,
        spare: bool = True,
        catalog: Iterable[Analysis] = CATALOG,
        functions: WorkerFunctions | None = None,
    ) -> None:
        self._settings = settings
        self._setup = Setup(settings, functions or WorkerFunctions(), restrict_paths)
        self._functions = {analysis.verb: analysis.function for analysis in catalog}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._book = JobBook()
        self._waiting: list[LocalJob] = []  # in order of arrival
        self._pool = Pool(self._start, limit=settings.workers, spare=spare)
        self._calm_since = time.monotonic()
        self._closed = False
        if spare:
            with self._lock:
                self._pool.start_spare()
        threading.Thread(target=self._watch, name="engine watch", daemon=True).start()
        atexit.register(self.close)

    def open(self, reference: CheckpointRef) -> LocalJob:
        """Stage a checkpoint; see the protocol."""
        keep = reference.kind in FIXED
        return self._ask(("open", str(reference)), OpenRequest(reference), keep=keep)

    def run(self, fingerprint: str, verb: str, **parameters: Any) -> LocalJob:
        """Run an analysis; see the protocol.

        Raises:
            RequestError: If there is no such analysis.
        """
        if verb not in self._functions:
            known = ", ".join(self._functions)
            raise RequestError(f"There is no analysis {verb!r}: choose one of {known}.")
        request = RunRequest(fingerprint, self._functions[verb], parameters)
        return self._ask((fingerprint, verb, freeze(parameters)), request, keep=True)

    def job(self, job_id: str) -> LocalJob | None:
        """Find a job again."""
        with self._lock:
            return self._book.find(job_id)

    def forget(self, fingerprint: str) -> None:
        """Drop a checkpoint that was deleted: its worker, its work and its results."""
        with self._lock:
            worker = self._pool.of(fingerprint)
            if worker:
                self._end(worker, CancelledError("The checkpoint was deleted."))
            self._book.forget(fingerprint)
        self._dispatch()

    def workers(self) -> tuple[WorkerStatus, ...]:
        """The processes, the spare last."""
        with self._lock:
            workers = [(w, w.fingerprint, w.job is not None) for w in self._pool.all]
        return tuple(
            WorkerStatus(fingerprint, worker.pid, worker.resident_nbytes(), busy)
            for worker, fingerprint, busy in workers
        )

    def close(self) -> None:
        """End every worker; what waits or runs is cancelled."""
        with self._lock:
            self._closed = True
            workers = self._pool.all
            error = CancelledError("The app was closed before the work was done.")
            for worker in workers:
                self._end(worker, error)
            for job in self._waiting:
                self._settle(job, error)
            self._waiting.clear()
        self._wake.set()
        atexit.unregister(self.close)
        for worker in workers:
            worker.join(CLOSE_SECONDS)

    def _start(self, network: bool) -> WorkerProcess:
        return WorkerProcess(
            self._setup, network=network, on_message=self._on_message, on_end=self._on_end
        )

    def _ask(self, key: Any, request: OpenRequest | RunRequest, *, keep: bool) -> LocalJob:
        with self._lock:
            if self._closed:
                raise WorkerError("The app is shutting down: start it again, then ask again.")
            job = self._book.asked(key)
            if job is not None:
                return job
            job = LocalJob(key, request, keep=keep, stop=self._cancel)
            self._book.add(job)
            self._waiting.append(job)
        self._dispatch()
        return job

    def _dispatch(self) -> None:
        """Give waiting jobs to free workers; the caller does not hold the lock."""
        started = []
        with self._lock:
            for job in list(self._waiting):
                try:
                    worker = self._pool.place(job, wanted=self._wanted(job))
                except OSError as error:
                    self._waiting.remove(job)
                    self._settle(job, limits.start_error(error))
                    continue
                if worker is None:
                    job.report(Progress(None, self._pool.why_waiting(job)))
                    continue
                self._waiting.remove(job)
                worker.started = time.monotonic() + (0 if worker.ready else BOOT_SECONDS)
                job.start()
                started.append((worker, job))
        for worker, job in started:
            worker.send(job.message)
        self._wake.set()

    def _wanted(self, job: LocalJob) -> set[str]:
        """Checkpoints that other jobs wait for, unless this one has been patient enough."""
        if time.monotonic() - job.asked > PATIENCE_SECONDS:
            return set()
        return {
            waiting.request.fingerprint
            for waiting in self._waiting
            if isinstance(waiting.request, RunRequest)
        }

    def _cancel(self, job: LocalJob) -> None:
        error = CancelledError("The work was stopped. Ask again to start it anew.")
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
                self._settle(job, error)
            for worker in self._pool.busy:
                if worker.job is job:
                    self._end(worker, error)
        self._dispatch()

    def _end(self, worker: WorkerProcess, error: InspectorError) -> None:
        job = worker.job
        if self._pool.drop(worker) and job:
            self._settle(job, error)

    def _settle(self, job: LocalJob, outcome: Any, nbytes: int = 0) -> None:
        if isinstance(outcome, InspectorError):
            job.fail(outcome)
        else:
            job.succeed(outcome, nbytes)
        also = ("open", outcome.reference) if isinstance(outcome, Opened) else None
        self._book.settled(job, also=also)

    def _on_message(self, worker: WorkerProcess, message: Any, nbytes: int) -> None:
        with self._lock:
            self._calm_since = time.monotonic()
            if isinstance(message, Ready) and not worker.ready:
                worker.ready, worker.started = True, time.monotonic()
            elif isinstance(message, Warm):
                worker.warm = True
            elif worker.job is None:
                return  # the last words of a worker that was dropped
            elif isinstance(message, Progress):
                worker.job.report(message)
            else:
                self._finish(worker, worker.job, message, nbytes)
        self._dispatch()

    def _finish(self, worker: WorkerProcess, job: LocalJob, message: Any, nbytes: int) -> None:
        outcome = _outcome(message, job.request)
        worker.job = None
        if isinstance(outcome, Opened):
            self._pool.opened(worker, job, outcome)
        if isinstance(outcome, CheckpointError) and isinstance(job.request, RunRequest):
            self._book.forget(job.request.fingerprint)  # it has gone: let it be opened anew
        # A process that has read a checkpoint serves no other one.
        if worker.fingerprint is None or isinstance(outcome, WorkerError):
            self._pool.drop(worker)
        self._settle(job, outcome, nbytes)

    def _on_end(self, worker: WorkerProcess, error: WorkerError | None, exit_code: int) -> None:
        with self._lock:
            self._end(worker, error or limits.death_error(exit_code))
        self._dispatch()

    def _watch(self) -> None:
        while not self._closed:
            with self._lock:
                self._watch_limits()
                self._watch_spare()
                restless = bool(self._pool.busy) or self._pool.wants_spare
            self._wake.wait(WATCH_SECONDS if restless else None)
            self._wake.clear()

    def _watch_limits(self) -> None:
        for worker in self._pool.busy:
            if worker.resident_nbytes() > self._settings.worker_nbytes:
                self._end(worker, limits.memory_error(self._settings))
            elif time.monotonic() - worker.started > self._settings.request_seconds:
                self._end(worker, limits.time_error(self._settings))

    def _watch_spare(self) -> None:
        calm = time.monotonic() - self._calm_since > SPARE_SECONDS
        if calm and self._pool.wants_spare and not self._closed:
            self._pool.start_spare()


def _outcome(message: Any, request: OpenRequest | RunRequest) -> Any:
    if isinstance(message, Failure):
        return getattr(errors, message.error, InspectorError)(message.text)
    if isinstance(message, Answer):
        opened = isinstance(message.value, Opened)
        if opened == isinstance(request, OpenRequest):
            return message.value
    return WorkerError("The worker answered out of turn. Ask again: a new worker takes over.")
