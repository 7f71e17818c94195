"""A worker process as the server sees it: its pipe, its log and how it ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from inspector.catalog import Needs, find
from inspector.errors import CheckpointError, InspectorError, WorkerError
from inspector.results.checkpoint import Opened
from inspector.sandbox import limits
from inspector.sandbox.confinement import Confinement
from inspector.sandbox.disk_usage import kept_nbytes
from inspector.sandbox.environment import worker_environment
from inspector.serving.encoding import DecodeError, decode, encode
from inspector.serving.engine.jobs import LocalJob
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.wire import SAID, BatchRequest, Fetched, OpenRequest, Setup, device_of
from inspector.serving.engine.workers.forking import fork_servers
from inspector.serving.engine.workers.logs import LOG, follow_log
from inspector.serving.engine.workers.outside import Outside
from inspector.serving.engine.workers.worker_folder import WorkerFolder
from inspector.serving.storing.marks import veiled
from inspector.serving.storing.registry import discard_upload
from inspector.settings import MB
from inspector.store.disk import disk_sentence
from inspector.store.hashing import BackgroundHasher
from inspector.store.manifests.documents import collector_paused
from inspector.store.origins.hub import versions_folder
from inspector.store.origins.hub_headers import put_headers
from inspector.store.origins.origin import Reach

# Bytes of a worker's answer, by what the question needs, well above the largest that were measured: the tensors of
# DeepSeek-V3 (27 MB), a million learning rates (48 MB), a lens of five million cells (315 MB).
LONGEST: dict[Needs, int] = {"names": 100_000_000, "rows": 200_000_000, "model": 500_000_000}
MAX_MESSAGE = max(LONGEST.values())
MAX_OPENED, MAX_UNASKED = 20_000_000, 1_000_000  # of an answer to "open"; while nothing is asked
MOST_MESSAGES, A_SECOND = 5_000, 200  # of a worker: at once, and for each second that it lives
BOOT_SECONDS = 60.0  # for a process to start, which is not the request's time
END_SECONDS = 2.0  # between the end of the pipe and the end of the process


class WorkerProcess:
    """One worker process.

    A thread reads the pipe and calls `on_message(worker, message, nbytes)`, then once
    `on_end(worker, error)`. The other fields belong to the engine and are guarded by its lock.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        network: bool,
        when: bytes,
        outside: Outside,
        on_message: Callable[[WorkerProcess, Any, int], None],
        on_end: Callable[[WorkerProcess, WorkerError | None, int | None], None],
    ) -> None:
        self.fingerprint: str | None = None  # of the checkpoint that it holds
        self.jobs: tuple[LocalJob, ...] = ()  # what it does now
        self.started = 0.0  # time.monotonic() when it took them
        self.used = 0  # the engine's count of requests, at its last one
        self.ready = False  # True: it is up
        self.warm = False  # True: it has imported everything slow
        self.network = network  # True: it may download, and ends after that
        self.outside = outside  # what it may read outside the store
        self.name = ""  # of the checkpoint
        self.confinement: Confinement | None = None  # what it says when it is up
        self.opening: int | None = None  # as limits.exceeded takes it
        self.device = ""  # likewise
        self.spent = False  # True: it was ended because it unpacked an archive
        self._settings = setup.settings
        self._ahead: BackgroundHasher | None = None  # has hashed what is being opened
        self._cpu_before = 0.0  # processor seconds at its last request's start
        self._on_message, self._on_end = on_message, on_end
        self._sending = threading.Lock()
        environment = worker_environment(
            os.environ, settings=setup.settings, network=network, login=not setup.restrict_paths
        )
        self._process = fork_servers.fork(environment, setup.functions.modules, when)
        self._connection = self._process.connection
        self._setup = setup
        self._folder = WorkerFolder(setup.settings)
        self._thread = threading.Thread(target=self._follow, name="worker", daemon=True)
        self._thread.start()
        told = veiled(self._folder.settings)
        setup = replace(setup, network=network, settings=told, outside=tuple(sorted(outside)))
        self.send(encode(setup))

    @property
    def pid(self) -> int:
        """Of the process; 0 while it is being started."""
        return self._process.pid

    def take(self, jobs: tuple[LocalJob, ...]) -> None:
        """Mark jobs as taken; the engine, which holds its lock, then sends them."""
        self.jobs = jobs
        self.started = time.monotonic() + (0 if self.ready else BOOT_SECONDS)
        self._cpu_before = self.cpu_seconds()
        request = jobs[0].request
        self.opening = request.reference.origin.costs(self._settings) if isinstance(request, OpenRequest) else None
        self.device = device_of(request)
        for job in jobs:
            job.start(len(jobs))

    def give(self, jobs: tuple[LocalJob, ...]) -> None:
        """Send the jobs that were taken, once the worker has all that they need."""
        for job in jobs:
            self._folder.prepare(job.request)
        self.send(encode(BatchRequest(tuple(job.message for job in jobs))))
        request = jobs[0].request
        if isinstance(request, OpenRequest):
            from inspector.serving.storing.receiving import look_ahead  # takes a moment, which the worker needs longer

            self._ahead = look_ahead(request.reference.origin, self._reach(request))

    def keep(self, job: LocalJob, outcome: Any) -> Any:
        """Put into the store what the worker staged or computed for a job.

        A process that has unpacked an archive ends before the files are hashed: it may hold them open.

        Returns:
            The outcome, or the error that took its place.
        """
        if not isinstance(job.request, OpenRequest):
            self._folder.collect()
            return outcome
        try:
            if isinstance(outcome, Fetched):
                return self._brought(job.request, outcome)
            return self._receive(job, job.request, outcome) if isinstance(outcome, Opened) else outcome
        except InspectorError as error:
            return error
        finally:
            if job.request.reference.origin.arrives:
                with suppress(InspectorError):
                    discard_upload(job.request.reference.value, settings=self._settings)

    def _brought(self, request: OpenRequest, fetched: Fetched) -> OpenRequest:
        """What is to be opened, now that it is on this machine: headers go into the store."""
        named = request.reference.value
        if not fetched.alone:
            return replace(request, fetched=versions_folder(named) / fetched.version)
        told = {"headers": fetched.headers} if fetched.headers else {}
        try:
            folder = put_headers(named, {"commit": fetched.version, "small": fetched.small} | told, self._settings)
        except (OSError, ValueError) as error:
            sentence = disk_sentence(error, self._settings) if isinstance(error, OSError) else None
            raise CheckpointError(sentence or f"The headers of {named} could not be stored: try again.") from error
        return replace(request, fetched=folder)

    def _receive(self, job: LocalJob, request: OpenRequest, told: Opened) -> Opened:
        return find(self._setup.functions.receive)(
            told,
            request.reference.origin,
            self._reach(request),
            own=self._folder.own,
            progress=lambda fraction, text: job.report(Progress(fraction, text)),
            ahead=self._ahead,
            end=self._end,
        )

    def _reach(self, request: OpenRequest) -> Reach:
        return Reach(self._settings, self._setup.restrict_paths, request.fetched)

    def _end(self) -> None:
        """End the process, which has unpacked an archive."""
        self.spent = True
        self.kill()
        self._process.wait()

    def send(self, data: bytes) -> None:
        """Send an encoded message; if the worker has died, its end is noticed elsewhere."""
        with self._sending, suppress(OSError):
            self._connection.send_bytes(data)

    def kill(self) -> None:
        """End the process now, even in the middle of its work."""
        self._process.kill()

    def join(self, timeout: float) -> None:
        """Wait until the process has ended, and the thread that serves it."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def cpu_seconds(self) -> float:
        """Processor time since the process was started; 0 when it is gone."""
        return limits.cpu_seconds_of(self.pid)

    def keeps_too_much(self) -> bool:
        """Whether its folder holds more than it may; takes a moment where there are many files."""
        return kept_nbytes(self._folder.own, self.pid) > self._settings.worker_disk_nbytes

    def usage(self) -> limits.Usage:
        """What the process uses now; nothing once it is gone. A request that has its answer takes no more time."""
        since = self.started if self.jobs else time.monotonic()
        return limits.usage_of(self.pid, since=since, cpu_before=self._cpu_before)

    def exceeded(self) -> WorkerError | None:
        """The sentence for a limit that it exceeds now, at work or after its answer; None: it does not."""
        opening = self.opening if self.jobs else None
        return limits.exceeded(self.usage(), self._settings, opening=opening, device=self.device)

    def _follow(self) -> None:
        try:
            self._process.begin()
        except OSError as error:
            self._folder.close()
            self._on_end(self, limits.start_error(error), None)
        else:
            log = follow_log(self._process.log, "worker", self.pid)
            fault, exit_code = self._read(), self._wait()
            try:
                self._folder.close()
            finally:  # whatever it left there: those who asked it are told
                self._on_end(self, fault, exit_code)
            log.join()
        with self._sending:
            self._connection.close()

    def _read(self) -> WorkerError | None:
        """Read what it sends until it ends; the error is its own fault."""
        begun, messages, longest = time.monotonic(), 0, MAX_UNASKED
        try:
            while True:
                self._connection.poll(None)
                longest = longest_answer(self.jobs)
                data = self._connection.recv_bytes(longest)
                with collector_paused():
                    self._on_message(self, decode(data, *SAID), len(data))
                messages += 1
                if messages > MOST_MESSAGES + A_SECOND * (time.monotonic() - begun):
                    raise DecodeError("The worker sent too many messages.")
        except (EOFError, OSError):
            return None if self._connection.readable else self._too_long(longest)
        except WorkerError as lie:
            self.kill()
            return lie
        except Exception as broken:  # bytes that are no message: the worker cannot be trusted
            LOG.warning("a worker sent an invalid reply: %s", type(broken).__name__)
            self.kill()
            return WorkerError("The worker sent an invalid reply and was ended. Try again: a new worker takes over.")

    def _too_long(self, longest: int) -> WorkerError:
        """The sentence for a message that was not read, after which nothing can be read."""
        self.kill()
        return WorkerError(
            f"The worker's reply exceeded the limit of {longest / MB:,.0f} MB, so the worker was ended: ask for less, "
            "such as a shorter text or fewer tokens."
        )

    def _wait(self) -> int | None:
        late = threading.Timer(END_SECONDS, self.kill)
        late.start()
        try:
            return self._process.wait()
        finally:
            late.cancel()


def longest_answer(jobs: Sequence[LocalJob]) -> int:
    """Bytes that a worker's next message may have."""
    if not jobs:
        return MAX_UNASKED
    request = jobs[0].request
    if isinstance(request, OpenRequest):
        return MAX_MESSAGE if request.downloads else MAX_OPENED  # headers come in one message
    return LONGEST[request.needs]
