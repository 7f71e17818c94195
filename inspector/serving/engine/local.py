"""The local engine: one process on this machine for every open checkpoint.

Why not loky, joblib or pebble: their pools give any task to any process. This engine needs one
process per checkpoint (the model stays loaded, ending the process frees its memory, and a hostile
file affects no other checkpoint). It also needs progress during the work, and must end one process
for cancellation, memory or time without disturbing the others. `multiprocessing`'s own spawn does
not work either: started from Streamlit, it runs the app a second time in the child. So a worker is
a copy of a fork server (see `forkserver`) that talks over a private `multiprocessing.connection`
pipe.

A worker gets one batch at a time. A batch is a single job unless several jobs wait for the same
analysis of the same checkpoint and the analysis can answer many at once. A job that finds its
worker idle is sent alone and never waits for others to join. The other jobs wait here in order of
arrival, except that a loaded model first serves the jobs that wait for it. If a worker dies during
a batch, each of its jobs runs again alone, so only the one at fault fails.
"""

from __future__ import annotations

import atexit
import compileall
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import inspector
from inspector.catalog import CATALOG, Analysis
from inspector.errors import CLOSING, STOPPED, CancelledError, CheckpointError, InspectorError, WorkerError
from inspector.results.checkpoint import Opened
from inspector.sandbox import limits
from inspector.sandbox.compiling import Compiler
from inspector.serving.engine.jobs import JobBook, LocalJob, keyed_request
from inspector.serving.engine.manifest_check import check_against_manifest
from inspector.serving.engine.protocol import Ending, Progress, WorkerStatus
from inspector.serving.engine.shared_store_sync import EngineCallbacks, SharedStoreSync
from inspector.serving.engine.waiting import PATIENCE_SECONDS, Waiting
from inspector.serving.engine.wire import (
    Answers,
    Failure,
    OpenRequest,
    Partial,
    Ready,
    RunRequest,
    Setup,
    Warm,
    WorkerFunctions,
    read_outcomes,
    read_partial,
    read_progress,
)
from inspector.serving.engine.workers.outside import Outside, find_outside
from inspector.serving.engine.workers.pool import Pool
from inspector.serving.engine.workers.process import WorkerProcess
from inspector.serving.log import digest, record
from inspector.serving.notice import refuse_new_work
from inspector.settings import Settings
from inspector.store.manifests.entries import is_held
from inspector.store.origins.hub_headers import known_headers
from inspector.store.reference import CheckpointRef

WATCH_SECONDS = 0.1  # between two looks at the memory of busy workers
ALL_SECONDS = 1.0  # between two looks at all workers and their folders
SPARE_SECONDS = 1.0  # of calm before a spare is started
CLOSE_SECONDS = 5.0
ENDINGS = 20  # of workers, that are remembered
UNSURE = (InspectorError, WorkerError)  # these very classes say nothing about the request itself


class LocalEngine:
    """Runs staging and analyses in worker processes; every method may be called from any thread.

    Args:
        settings: Limits, and where the store is.
        restrict_paths: True: folders are opened under the allowed roots only.
        spare: True: keep one process warm for the next checkpoint.
        catalog: The analyses that may be asked for.
        functions: What the workers import.
        patience: Seconds that a job waits while a loaded model serves those that came after it.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        restrict_paths: bool = True,
        spare: bool = True,
        catalog: Iterable[Analysis] = CATALOG.values(),
        functions: WorkerFunctions | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._settings = settings
        self._setup = Setup(settings, functions or WorkerFunctions(), restrict_paths)
        self._analyses = {analysis.verb: analysis for analysis in catalog}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._book = JobBook()
        self._waiting = Waiting(patience=patience)
        self._compiler = Compiler(settings)
        self._carrier = SharedStoreSync(settings, EngineCallbacks(self.open, self._proceed, self._carried))
        self._endings: deque[Ending] = deque(maxlen=ENDINGS)
        self._pool = Pool(self._start, limit=settings.workers, spare=spare)
        self._calm_since = time.monotonic()
        self._closed = False
        self._ended = threading.Event()
        if spare:
            with self._lock:
                self._pool.start_spare()
        for task in (self._watch, self._watch_all, _keep_compiled):
            threading.Thread(target=task, name=f"engine {task.__name__}", daemon=True).start()
        if settings.store:
            threading.Thread(target=self._carrier.keep_sharing, args=(self._ended,), daemon=True).start()
        atexit.register(self.close)

    def open(self, reference: CheckpointRef, *, whole: bool = False) -> LocalJob:
        """Stage a checkpoint; see the protocol."""
        origin = reference.origin
        whole = whole and origin.downloads  # others have nothing to fetch, and one name for the answer
        known = known_headers(reference.value, self._settings) if origin.downloads and not whole else ()
        request = OpenRequest(reference, origin.lies(self._settings), whole, known)
        return self._ask(("whole" if whole else "open", str(reference)), request, keep=origin.fixed)

    def run(self, fingerprint: str, verb: str, *, called: Sequence[str] = (), **parameters: Any) -> LocalJob:
        """Run an analysis; see the protocol.

        Raises:
            RequestError: If there is no such analysis.
        """
        key, request = keyed_request(self._analyses, fingerprint, verb, parameters, called)
        self._compiler.start(self._analyses[verb])
        return self._ask(key, request, keep=True, question=verb)

    def job(self, job_id: str) -> LocalJob | None:
        """Find a job again."""
        with self._lock:
            return self._book.find_and_join(job_id)

    def forget(self, fingerprint: str) -> None:
        """Drop a checkpoint that was deleted: its worker, its work and its results."""
        with self._lock:
            for worker in self._pool.about(fingerprint):
                self._end(worker, CancelledError("The checkpoint was deleted."))
            self._book.forget(fingerprint)
        self._dispatch()

    def release(self, fingerprint: str) -> bool:
        """End a checkpoint's idle worker; see the protocol."""
        with self._lock:
            worker = self._pool.of(fingerprint)
            released = bool(worker and not worker.jobs and self._pool.drop(worker))
        self._dispatch()
        return released

    def workers(self) -> tuple[WorkerStatus, ...]:
        """The processes, the spare last."""
        with self._lock:
            workers = [(w, w.fingerprint, bool(w.jobs), w.name) for w in self._pool.all]
        found = []
        for worker, fingerprint, busy, name in workers:
            usage = worker.usage()
            found.append(
                WorkerStatus(
                    fingerprint=fingerprint,
                    pid=worker.pid,
                    memory_nbytes=usage.memory_nbytes,
                    busy=busy,
                    name=name,
                    cpu_seconds=worker.cpu_seconds(),
                    threads=usage.threads,
                    confinement=worker.confinement,
                )
            )
        return tuple(found)

    def endings(self) -> tuple[Ending, ...]:
        """What ended the last workers; see the protocol."""
        with self._lock:
            return tuple(reversed(self._endings))

    def close(self) -> None:
        """End every worker; what waits or runs is cancelled."""
        with self._lock:
            self._closed = True
            workers = self._pool.all
            error = CancelledError("The app was closed before the work was done.")
            for worker in workers:
                self._end(worker, error)
            for job in (*self._waiting, *self._carrier.jobs):
                self._waiting.discard(job)
                self._settle(job, error)
        self._ended.set()
        self._wake.set()
        atexit.unregister(self.close)
        self._compiler.close()
        for worker in workers:
            worker.join(CLOSE_SECONDS)

    def _start(self, network: bool, when: bytes, outside: Outside) -> WorkerProcess:
        return WorkerProcess(
            self._setup, network=network, when=when, outside=outside, on_message=self._on_message, on_end=self._on_end
        )

    def _ask(self, key: Any, request: OpenRequest | RunRequest, *, keep: bool, question: str = "open") -> LocalJob:
        with self._lock:
            if self._closed:
                raise WorkerError(CLOSING)
            job, fresh = self._book.asked(key), False
            if job is not None and not self._lost(job):
                job.join()
            else:
                refuse_new_work()
                job, fresh = LocalJob(key, request, keep=keep, stop=self._cancel, question=question), True
                self._book.add(job)
                if not self._carrier.brings(job):
                    self._waiting.add(job)
        if fresh:
            self._look_outside([job])
        if job.status == "waiting":
            self._dispatch()
        return job

    def _lost(self, job: LocalJob) -> bool:
        """Whether what a job opened has been removed from the store since, by anyone."""
        opened = job.result() if job.status == "done" else None
        return isinstance(opened, Opened) and not is_held(opened.fingerprint, settings=self._settings)

    def _look_outside(self, jobs: Iterable[LocalJob]) -> None:
        """Find what the workers of new jobs must read outside the store; without the lock, as disks may be slow."""
        for job in jobs:
            if job.outside is None:
                job.outside = find_outside(job.request, self._settings, restrict_paths=self._setup.restrict_paths)

    def _proceed(self, job: LocalJob) -> None:
        """Let a job wait for a worker: its checkpoint has arrived."""
        with self._lock:
            if not (job.settled or self._closed):
                self._waiting.add(job)
        self._dispatch()

    def _carried(self, job: LocalJob, outcome: Any, nbytes: int) -> None:
        """Settle a job that fetched or published an upload."""
        with self._lock:
            self._forget_gone(job, outcome)
            self._settle(job, outcome, nbytes)

    def _forget_gone(self, job: LocalJob, outcome: Any) -> None:
        """Forget a checkpoint that a worker cannot find, so that it can be opened again."""
        if isinstance(outcome, CheckpointError) and isinstance(job.request, RunRequest):
            for fingerprint in self.gone(job.request.about):
                self._book.forget(fingerprint)

    def gone(self, about: tuple[str, ...]) -> tuple[str, ...]:
        """What to forget after a refusal: of a pair, which a strange adapter can make fail, only what is not there."""
        return about if len(about) == 1 else tuple(e for e in about if not is_held(e, settings=self._settings))

    def _dispatch(self) -> None:
        """Give waiting jobs to free workers; the caller does not hold the lock."""
        started = []
        with self._lock:
            for job in self._pool.in_turn(self._waiting):
                if job.status == "running" or job.outside is None:
                    continue  # since a moment ago, in the batch of an earlier one; or too new
                try:
                    worker = self._pool.place(job, wanted=self._waiting.wanted(job))
                except OSError as error:
                    self._waiting.discard(job)
                    self._settle(job, limits.start_error(error))
                    continue
                if worker is None:
                    job.report(Progress(None, self._pool.why_waiting(job)))
                    continue
                batch = self._waiting.take(job)
                worker.take(batch)
                started.append((worker, batch))
        for worker, batch in started:
            worker.give(batch)
        self._wake.set()

    def _cancel(self, job: LocalJob) -> None:
        with self._lock:
            if not job.waiters.leave():
                return
            self._waiting.discard(job)
            self._settle(job, CancelledError(STOPPED))
            for worker in self._pool.busy:
                if all(each.settled for each in worker.jobs):
                    self._pool.drop(worker)
        self._dispatch()

    def _end(self, worker: WorkerProcess, error: InspectorError) -> None:
        jobs = worker.jobs
        self._drop(worker, error)
        for job in jobs:
            self._settle(job, error)

    def _drop(self, worker: WorkerProcess, error: InspectorError) -> None:
        asked = ", ".join(sorted({job.question for job in worker.jobs}))
        if self._pool.drop(worker) and isinstance(error, WorkerError):
            when = datetime.now(UTC).isoformat(timespec="seconds")
            self._endings.append(Ending(when, worker.name, str(error)))
            record(
                "worker ended",
                checkpoint=digest(worker.fingerprint or ""),
                question=asked,
                cause=limits.cause_of(error),
                reason=str(error),
            )

    def _settle(self, job: LocalJob, outcome: Any, nbytes: int = 0) -> None:
        """Give a job its outcome; the jobs of a failed batch wait to run alone."""
        if job.settled:
            return
        if job.batch > 1 and type(outcome) in UNSURE:
            job.put_back()
            self._waiting.add(job)
            return
        if isinstance(outcome, InspectorError):
            job.fail(outcome)
        else:
            job.succeed(outcome, nbytes)
        also = ("open", outcome.reference) if isinstance(outcome, Opened) else None
        self._book.settled(job, also=also)

    def _on_message(self, worker: WorkerProcess, message: Any, nbytes: int) -> None:
        jobs, outcomes = worker.jobs, []
        if isinstance(message, Partial):
            self._show(jobs, message)
            return
        if isinstance(message, Answers | Failure):  # outside the lock: they may be large
            outcomes = self._read(worker, jobs, message)
        with self._lock:
            self._calm_since = time.monotonic()
            if isinstance(message, Ready) and not worker.ready:
                worker.ready, worker.started = True, time.monotonic()
                worker.confinement = message.confinement
            elif isinstance(message, Warm):
                worker.warm = True
            elif isinstance(message, Progress):
                progress = read_progress(message)
                for job in worker.jobs:
                    job.report(progress)
                return
            elif worker.jobs and worker.jobs is jobs:  # or its last words: it was dropped
                self._finish(worker, outcomes, nbytes)
        self._look_outside(jobs)
        self._dispatch()

    def _read(self, worker: WorkerProcess, jobs: Sequence[LocalJob], message: Answers | Failure) -> list[Any]:
        """What a message means for each job, once nothing in it is known to be false."""
        outcomes = read_outcomes(message, [job.request for job in jobs])
        for job, outcome in zip(jobs, outcomes, strict=True):
            check_against_manifest(outcome, job.request, self._settings)
        return [worker.keep(job, outcome) for job, outcome in zip(jobs, outcomes, strict=True)]

    def _show(self, jobs: Sequence[LocalJob], message: Partial) -> None:
        """Keep a partial answer; one that comes after the cancellation is dropped."""
        for job in jobs:
            partial = read_partial(message, job.request, number=job.partials + 1)  # outside the lock, as answers are
            with self._lock:
                job.show(partial)

    def _finish(self, worker: WorkerProcess, outcomes: list[Any], nbytes: int) -> None:
        jobs = worker.jobs
        for job, outcome in zip(jobs, outcomes, strict=True):
            if isinstance(outcome, OpenRequest):
                self._open_fetched(job, outcome)
                continue
            if isinstance(outcome, Opened):
                self._pool.opened(worker, job, outcome)
                if self._carrier.stores(job, outcome, nbytes):
                    continue  # settled when the shared store has it
            self._forget_gone(job, outcome)
            self._settle(job, outcome, nbytes // len(jobs))
        # A process that has read a checkpoint serves no other one.
        fatal = next((each for each in outcomes if isinstance(each, WorkerError)), None)
        if fatal:
            self._drop(worker, fatal)  # which tells what it was asked
        worker.jobs = ()
        if fatal:
            return
        if worker.fingerprint is None or worker.spent:
            self._pool.drop(worker)

    def _open_fetched(self, job: LocalJob, request: OpenRequest) -> None:
        """Let a job wait for a worker that reads what another one has downloaded."""
        if not job.settled:
            job.turn_to(request)
            job.put_back()
            job.outside = None
            self._waiting.add(job)

    def _on_end(self, worker: WorkerProcess, error: WorkerError | None, exit_code: int | None) -> None:
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
            if error := worker.exceeded():
                self._end(worker, error)

    def _watch_all(self) -> None:
        """End workers that fill the disk or exceed another limit, busy or not."""
        while not self._ended.wait(ALL_SECONDS):
            with self._lock:
                workers = self._pool.all
            for worker in workers:
                full = worker.keeps_too_much()  # takes a moment
                with self._lock:
                    error = limits.limit_error(limits.KEPT, self._settings) if full else worker.exceeded()
                    if error:
                        self._end(worker, error)
                if error:
                    self._dispatch()

    def _watch_spare(self) -> None:
        calm = time.monotonic() - self._calm_since > SPARE_SECONDS
        if calm and self._pool.wants_spare and not self._closed:
            self._pool.start_spare()


def _keep_compiled() -> None:
    """Write our modules' bytecode to disk, which a sandboxed worker cannot do."""
    compileall.compile_dir(Path(inspector.__file__).parent, quiet=2)
