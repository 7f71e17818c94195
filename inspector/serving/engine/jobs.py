"""Jobs that wait, run, or keep their results for the next visit."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from inspector.catalog import Analysis
from inspector.errors import CancelledError, InspectorError, RequestError
from inspector.request import beside
from inspector.serving import metrics
from inspector.serving.encoding import encode
from inspector.serving.engine.protocol import Progress, Status
from inspector.serving.engine.shares import Waiters, asker
from inspector.serving.engine.wire import OpenRequest, RunRequest
from inspector.serving.engine.workers.outside import Outside
from inspector.store.pairs import fingerprints_in

MAX_JOBS = 512  # settled ones, kept to be found again
MAX_NBYTES = 512_000_000  # of their results, as they came through the pipe
MAX_REQUEST = 1_000_000  # bytes of one request


class LocalJob:
    """One request to a worker; implements the protocol's Job.

    Everyone who asks the same question shares the result: treat it as read-only.

    Raises:
        RequestError: If the request is too long to send.
    """

    def __init__(
        self,
        key: Hashable,
        request: OpenRequest | RunRequest,
        *,
        keep: bool,
        stop: Callable[[LocalJob], None],
        question: str = "open",
    ) -> None:
        self.id = secrets.token_urlsafe(16)
        self.key = key
        self.question = question
        self.request = request
        self.message = _message(request)
        self.keep = keep  # True: asking again after it is done gives this job
        self.nbytes = 0  # size of the result
        self.asked = time.monotonic()
        self.outside: Outside | None = None  # what its worker must be able to read; None: not known yet
        self.askers = {asker()}
        self.waiters = Waiters()
        self.batch = 0  # jobs that its worker took at once, this one among them
        self._alone = False
        self._stop = stop
        self._status: Status = "waiting"
        self._progress = Progress(None, "Waiting")
        self._partial: Any = None
        self.partials = 0  # partial answers that its worker sent
        self._value: Any = None
        self._error: InspectorError | None = None
        self._settled = threading.Event()
        self._watchers: list[Callable[[], None]] = []
        metrics.begin(self)

    @property
    def status(self) -> Status:
        """The job's status."""
        return self._status

    @property
    def progress(self) -> Progress:
        """The job's latest progress."""
        return self._progress

    @property
    def partial(self) -> Any:
        """What is known of the result so far, the latest alone; see the protocol."""
        return self._partial

    @property
    def settled(self) -> bool:
        """True once the job can no longer change."""
        return self._settled.is_set()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result; see the protocol."""
        if not self._settled.wait(timeout):
            raise TimeoutError(f"The job is still {self._status} after {timeout} seconds.")
        if self._error is not None:
            raise type(self._error)(
                *self._error.args, option=self._error.option
            )  # one exception for each thread that waits
        return self._value

    def cancel(self) -> None:
        """Stop waiting; see the protocol."""
        self._stop(self)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job is settled; False if it is not after `timeout` seconds."""
        return self._settled.wait(timeout)

    def watch(self, changed: Callable[[], None]) -> None:
        """Call a function, from any thread, whenever status or progress may have changed."""
        self._watchers.append(changed)

    # The rest is the engine's, which calls it under its lock.

    def join(self) -> None:
        """Let whoever asks now wait for this job as well."""
        if not self.settled:
            self.askers.add(asker())  # may be one who has to wait for nobody
            self.waiters.join()

    def turn_to(self, request: OpenRequest) -> None:
        """Replace the request: what is to be opened has arrived on this machine."""
        self.request, self.message = request, _message(request)

    def report(self, progress: Progress) -> None:
        """Set the progress and notify the watchers."""
        if not self.settled:
            self._progress = progress
            self._tell()

    def show(self, partial: Any) -> None:
        """Take a partial answer in the place of the one before, and notify the watchers."""
        if not self.settled:
            self._partial, self.partials = partial, self.partials + 1
            self._tell()

    @property
    def batch_key(self) -> Hashable:
        """Jobs with equal keys can be answered in one batch; a job without a key runs alone."""
        if self._alone or not isinstance(self.request, RunRequest) or not self.request.batch:
            return None
        return self.request.fingerprint, self.request.batch, self.request.called

    def start(self, batch: int) -> None:
        """Mark the job as taken by a worker, as one of a batch."""
        self.batch = batch
        self._status = "running"
        self._progress = Progress(None, "Starting")
        self._partial, self.partials = None, 0

    def put_back(self) -> None:
        """Wait to run alone: the batch failed, and any of its jobs may be the cause; or what it needs was fetched."""
        self.batch, self._alone = 0, True
        self._status = "waiting"

    def succeed(self, value: Any, nbytes: int) -> None:
        """Settle with a result, unless the job is settled."""
        if not self.settled:
            self._value, self.nbytes = value, nbytes
            self._settle("done", Progress(1.0, "Done"))

    def fail(self, error: InspectorError) -> None:
        """Settle with an error, unless the job is settled."""
        if not self.settled:
            self._error = error
            status: Status = "cancelled" if isinstance(error, CancelledError) else "failed"
            self._settle(status, Progress(None, str(error)))

    def _settle(self, status: Status, progress: Progress) -> None:
        self._status, self._progress, self._partial = status, progress, None
        self._settled.set()
        metrics.settle(self, time.monotonic() - self.asked)
        self._tell()

    def _tell(self) -> None:
        for changed in self._watchers:
            changed()


class JobBook:
    """Finds jobs by id and by question; forgets the least recently used results."""

    def __init__(self, *, max_jobs: int = MAX_JOBS, max_nbytes: int = MAX_NBYTES) -> None:
        self._max_jobs = max_jobs
        self._max_nbytes = max_nbytes
        self._by_id: OrderedDict[str, LocalJob] = OrderedDict()  # least recently used first
        self._by_key: dict[Hashable, LocalJob] = {}

    def add(self, job: LocalJob) -> None:
        """Remember a new job."""
        self._by_id[job.id] = job
        self._by_key[job.key] = job

    def find(self, job_id: str) -> LocalJob | None:
        """The job with that id."""
        return self._touch(self._by_id.get(job_id))

    def find_and_join(self, job_id: str) -> LocalJob | None:
        """The job with that id, for whoever waits for it as well from now on."""
        if job := self.find(job_id):
            job.join()
        return job

    def asked(self, key: Hashable) -> LocalJob | None:
        """The running or finished job that answers the same question."""
        return self._touch(self._by_key.get(key))

    def settled(self, job: LocalJob, *, also: Hashable = None) -> None:
        """Keep or forget a job that has just settled.

        Args:
            job: The job.
            also: A second key under which the result answers.
        """
        if not (job.keep and job.status == "done"):
            self._unkey(job)
        elif also is not None:
            self._by_key[also] = job
        self._trim()

    def forget(self, fingerprint: str) -> None:
        """Forget what was answered about a checkpoint."""
        for job in [job for job in self._by_id.values() if job.settled]:
            opened = getattr(job.result(), "fingerprint", None) if job.status == "done" else None
            if fingerprint in (opened, *getattr(job.request, "fingerprints", ())):
                self._unkey(job)
                del self._by_id[job.id]

    def _touch(self, job: LocalJob | None) -> LocalJob | None:
        if job is not None:
            self._by_id.move_to_end(job.id)
        return job

    def _unkey(self, job: LocalJob) -> None:
        for key in [key for key, found in self._by_key.items() if found is job]:
            del self._by_key[key]

    def _trim(self) -> None:
        done = [job for job in self._by_id.values() if job.settled]
        count, nbytes = len(done), sum(job.nbytes for job in done)
        for job in done[:-1]:  # the newest is kept whatever its size
            if count <= self._max_jobs and nbytes <= self._max_nbytes:
                return
            count, nbytes = count - 1, nbytes - job.nbytes
            self._unkey(job)
            del self._by_id[job.id]


def _message(request: OpenRequest | RunRequest) -> bytes:
    message = encode(request)
    if len(message) > MAX_REQUEST:
        raise RequestError(
            f"The request has {len(message):,} bytes, more than the limit of {MAX_REQUEST:,}: shorten the text."
        )
    return message


def keyed_request(
    analyses: Mapping[str, Analysis],
    fingerprint: str,
    verb: str,
    parameters: dict[str, Any],
    called: Sequence[str] = (),
) -> tuple[Hashable, RunRequest]:
    """What asks for an analysis, and the key of every question that has the same answer.

    Raises:
        RequestError: If there is no such analysis.
    """
    analysis = analyses.get(verb)
    if analysis is None:
        known = ", ".join(analyses)
        raise RequestError(f"There is no analysis {verb!r}: choose one of {known}.")
    names = tuple(called)[: len(fingerprints_in(fingerprint)) + len(beside(parameters))]
    request = RunRequest(
        fingerprint,
        analysis.function,
        parameters,
        analysis.batch,
        names,
        analysis.result,
        analysis.partial,
        analysis.needs,
        analysis.reads_names(parameters),
    )
    return (fingerprint, verb, freeze(parameters), request.called), request


def freeze(value: Any) -> Hashable:
    """Make a key of plain parameters: equal exactly if type and value are.

    Raises:
        TypeError: If a value is neither plain nor hashable.
    """
    if isinstance(value, dict):
        return "dict", tuple(sorted((str(key), freeze(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return "list", tuple(freeze(item) for item in value)
    hash(value)
    return type(value).__name__, value
