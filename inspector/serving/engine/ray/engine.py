"""The Ray engine: opens checkpoints on this server and analyzes them on a cluster."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from inspector.catalog import CATALOG, Analysis
from inspector.errors import CLOSING, STOPPED, CancelledError, CheckpointError, InspectorError, WorkerError
from inspector.program import command_line
from inspector.results.checkpoint import Opened
from inspector.serving.encoding import DecodeError, decode, encode
from inspector.serving.engine.jobs import JobBook, LocalJob, keyed_request
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.protocol import Ending, Progress, WorkerStatus
from inspector.serving.engine.ray.cluster import refuse_without_ray
from inspector.serving.engine.ray.link import Link
from inspector.serving.engine.ray.messages import AskReplica, Call, Cancel, JobUpdate, ReplicaQuestion, Returned
from inspector.serving.engine.ray.replicas import Replicas
from inspector.serving.engine.wire import (
    Answers,
    Failure,
    Partial,
    RunRequest,
    WorkerFunctions,
    as_message,
    read_outcomes,
    read_partial,
    read_progress,
)
from inspector.serving.notice import refuse_new_work
from inspector.settings import Settings
from inspector.store.reference import CheckpointRef

CLOSE_SECONDS = 2.0
PAUSE_SECONDS = 15.0  # after a client has ended, in which a look starts no other one; a question does
STAGING = WorkerFunctions(light=(), warm_up=())  # here, no worker computes anything
NO_ANSWER = (
    "No replica of the Ray cluster answers: `ray status` shows whether its machines run; "
    f"`{command_line(['cluster'])}` deploys the inspector where it is missing."
)
NO_RESULT = "The cluster sent an invalid reply. Try again."


class RayEngine:
    """Stages checkpoints in workers of this server and has a cluster's replicas analyze them.

    Every method may be called from any thread. Replicas send progress, partial answers and answers.

    Args:
        settings: Limits, and where the store is.
        restrict_paths: True: folders are opened under the allowed roots only.
        spare: True: keep one process warm for the next checkpoint.
        catalog: The analyses that may be asked for.

    Raises:
        SettingsError: If Ray is not installed.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        restrict_paths: bool = True,
        spare: bool = True,
        catalog: Iterable[Analysis] = CATALOG.values(),
    ) -> None:
        refuse_without_ray()
        self._settings = settings
        self._analyses = {analysis.verb: analysis for analysis in catalog}
        self._local = LocalEngine(settings, restrict_paths=restrict_paths, spare=spare, functions=STAGING)
        self._lock = threading.Lock()
        self._book = JobBook()
        self._under_way: dict[str, LocalJob] = {}  # by id, on the cluster
        self._replicas = Replicas(self._send)
        self._opening: dict[str, LocalJob] = {}  # by id
        self._opened: dict[str, Opened] = {}  # by fingerprint: how a replica opens it, and names it
        self._closed = False
        self._lost, self._rejoin = "", float("-inf")  # why the client ended, and when a look starts another one
        self._link: Link | None = None
        with self._lock:
            self._connect()
        atexit.register(self.close)

    def open(self, reference: CheckpointRef, *, whole: bool = True) -> LocalJob:
        """Stage a checkpoint here; see the protocol. Always whole: replicas fetch models of the hub by themselves."""
        job = self._local.open(reference, whole=True)
        with self._lock:
            self._opening[job.id] = job
        return job

    def run(self, fingerprint: str, verb: str, *, called: Sequence[str] = (), **parameters: Any) -> LocalJob:
        """Have a replica run an analysis; see the protocol.

        Raises:
            RequestError: If there is no such analysis.
        """
        key, request = keyed_request(self._analyses, fingerprint, verb, parameters, called)
        for each in request.about:
            self._local.release(each)  # what was started to open it is needed no more
        with self._lock:
            if self._closed:
                raise WorkerError(CLOSING)
            job = self._book.asked(key)
            if job is not None:
                job.join()
                return job
            refuse_new_work()
            job = LocalJob(key, request, keep=True, stop=self._cancel, question=verb)
            job.report(Progress(None, "Waiting for a replica of the cluster"))
            question = ReplicaQuestion(fingerprint, verb, parameters, self._known(request), request.called)
            self._book.add(job)
            self._under_way[job.id] = job
            link = self._connect()
        link.send(AskReplica(job.id, fingerprint, encode(question)))
        return job

    def job(self, job_id: str) -> LocalJob | None:
        """Find a job again."""
        with self._lock:
            found = self._book.find_and_join(job_id)
        return found or self._local.job(job_id)

    def forget(self, fingerprint: str) -> None:
        """Drop a checkpoint that was deleted, here and on every replica."""
        self._local.forget(fingerprint)
        gone = CancelledError("The checkpoint was deleted.")
        with self._lock:
            self._opened.pop(fingerprint, None)
            for job in [j for j in self._under_way.values() if fingerprint in _about(j)]:
                self._settle(job, gone)
            self._book.forget(fingerprint)
        self._replicas.call("forget", fingerprint)

    def release(self, fingerprint: str) -> bool:
        """Have the replicas give back the memory that a checkpoint takes; see the protocol."""
        here = self._local.release(fingerprint)
        return any([here, *self._replicas.call("release", fingerprint)])

    def workers(self) -> tuple[WorkerStatus, ...]:
        """The processes of all replicas and of this server, spares last."""
        found = [self._named(each) for status in self._replicas.statuses() for each in status.workers]
        found += self._local.workers()
        return tuple(sorted(found, key=lambda worker: worker.fingerprint is None))

    def endings(self) -> tuple[Ending, ...]:
        """What ended the last workers, of the replicas and here; see the protocol."""
        found = [ending for status in self._replicas.statuses() for ending in status.endings]
        found += self._local.endings()
        return tuple(sorted(found, key=lambda ending: ending.when, reverse=True))

    def serves(self, settings: Settings) -> bool:
        """Whether it works under these settings, and is not closed."""
        return not self._closed and self._settings == settings

    def fault(self) -> str:
        """Why no replica would answer now; empty: one does."""
        if time.monotonic() < self._rejoin:
            return self._lost
        if self._replicas.statuses():
            self._lost = ""
        elif not self._lost:
            return NO_ANSWER
        return self._lost

    def close(self) -> None:
        """End what runs here; replicas are left to others, and what they do for us is stopped."""
        with self._lock:
            self._closed = True
            link, self._link = self._link, None
            for job in list(self._under_way.values()):
                self._settle(job, CancelledError("The app was closed before the work was done."))
        atexit.unregister(self.close)
        if link is not None:
            link.close(CLOSE_SECONDS)
        self._local.close()

    def _named(self, worker: WorkerStatus) -> WorkerStatus:
        """Add the name that this server knows; the node may not know it."""
        opened = self._opened.get(worker.fingerprint or "")
        return replace(worker, name=worker.name or opened.name) if opened else worker

    # The rest is called under the lock, unless it says otherwise.

    def _connect(self) -> Link:
        if self._link is None:
            self._link = Link(self._settings, on_message=self._on_message, on_end=self._on_end)
        return self._link

    def _known(self, request: RunRequest) -> tuple[tuple[str, str], ...]:
        """How a replica opens the checkpoint of a request."""
        for job in list(self._opening.values()):
            if job.status in ("waiting", "running"):
                continue
            del self._opening[job.id]
            if job.status == "done":
                opened = job.result()
                self._opened[opened.fingerprint] = opened
        return tuple(
            (each, self._opened[each].reference if each in self._opened else f"upload:{each}")
            for each in request.fingerprints
        )

    def _settle(self, job: LocalJob, outcome: Any, nbytes: int = 0) -> None:
        self._under_way.pop(job.id, None)
        if isinstance(outcome, InspectorError):
            job.fail(outcome)
        else:
            job.succeed(outcome, nbytes)
        self._book.settled(job)

    def _cancel(self, job: LocalJob) -> None:
        """Stop a job; takes the lock itself."""
        with self._lock:
            if job.id not in self._under_way or not job.waiters.leave():
                return
            self._settle(job, CancelledError(STOPPED))
            link = self._link
        if link is not None:
            link.send(Cancel(job.id))

    def _on_message(self, message: Any) -> None:
        """Handle a message from the client; takes the lock itself."""
        if isinstance(message, Returned):
            self._replicas.returned(message)
        elif isinstance(message, JobUpdate):
            self._hear(message)

    def _hear(self, said: JobUpdate) -> None:
        """Handle a message from or about a replica; takes the lock itself."""
        message = _read(said.data)
        gone: tuple[str, ...] = ()
        with self._lock:
            job = self._under_way.get(said.id)
            if job is None:  # it was cancelled, or has its answer
                return
            if isinstance(message, Progress):
                _report(job, read_progress(message), taken=said.taken)
                return
            if isinstance(message, Partial):
                self._show(job, message)
                return
            outcome = _outcome(message, job)
            if isinstance(outcome, CheckpointError):  # it has gone: let it be opened anew
                gone = self._local.gone(_about(job))
                for fingerprint in gone:
                    self._book.forget(fingerprint)
            self._settle(job, outcome, len(said.data))
        for fingerprint in gone:
            self._local.forget(fingerprint)

    def _show(self, job: LocalJob, message: Partial) -> None:
        """Keep a partial answer; one that lies ends its question, as a worker's does."""
        try:
            job.show(read_partial(message, job.request, number=job.partials + 1))
        except DecodeError:
            self._settle(job, WorkerError(NO_RESULT))

    def _on_end(self, link: Link, text: str) -> None:
        """Handle the end of the client; takes the lock itself."""
        with self._lock:
            if link is not self._link:
                return
            self._link = None
            self._lost, self._rejoin = text, time.monotonic() + PAUSE_SECONDS
            for job in list(self._under_way.values()):
                self._settle(job, WorkerError(text))
        self._replicas.lost()

    def _send(self, message: AskReplica | Call) -> None:
        """Send the client a message, and start a client if needed; takes the lock itself."""
        with self._lock:
            link = None if self._closed else self._connect()
        if link is None:
            self._replicas.lost()
        else:
            link.send(message)


def _read(data: bytes) -> Any:
    try:
        return decode(data, Progress, Partial, Answers, Failure)
    except Exception:  # bytes that are no message
        return as_message(WorkerError(NO_RESULT))


def _outcome(message: Any, job: LocalJob) -> Any:
    try:
        (outcome,) = read_outcomes(message, [job.request])
    except Exception:  # no answer to this question
        return WorkerError(NO_RESULT)
    return outcome


def _report(job: LocalJob, progress: Progress, *, taken: bool) -> None:
    if taken and job.status == "waiting":
        job.start(1)
    elif not taken and job.status == "running":
        job.put_back()
    job.report(progress)


def _about(job: LocalJob) -> tuple[str, ...]:
    return job.request.about if isinstance(job.request, RunRequest) else ()
