"""Choose the worker for a job: one process per open checkpoint, and one warm spare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from inspector.results.checkpoint import Opened
from inspector.serving.engine.jobs import LocalJob
from inspector.serving.engine.shares import Shares
from inspector.serving.engine.wire import NOW, WARM, OpenRequest
from inspector.serving.engine.workers.outside import NOTHING, Outside
from inspector.serving.engine.workers.process import WorkerProcess
from inspector.store.names import is_archive
from inspector.store.pairs import fingerprints_in, title


class Pool:
    """The worker processes of an engine, which guards every call by its lock.

    Args:
        start: Starts a process; takes whether it may use the network, when it is forked, and what it may read
            outside the store.
        limit: Workers at once, the spare not counted.
        spare: True: keep one process warm for the next checkpoint.
    """

    def __init__(self, start: Callable[[bool, bytes, Outside], WorkerProcess], *, limit: int, spare: bool) -> None:
        self._start = start
        self._limit = limit
        self._keep_spare = spare
        self._shares = Shares(limit, lambda: (worker.jobs for worker in self.busy))
        self._requests = 0
        self._started = 0
        self._spare_died = False
        self._opened: dict[str, str] = {}  # reference -> fingerprint
        self._names: dict[str, str] = {}  # fingerprint -> what the person calls it
        self.workers: list[WorkerProcess] = []
        self.spare: WorkerProcess | None = None

    @property
    def all(self) -> list[WorkerProcess]:
        """All processes, the spare last."""
        return [*self.workers, *([self.spare] if self.spare else [])]

    @property
    def busy(self) -> list[WorkerProcess]:
        """The processes that are working."""
        return [worker for worker in self.workers if worker.jobs]

    @property
    def wants_spare(self) -> bool:
        """True if there is no spare and starting one would delay nobody."""
        calm = all(worker.warm and not worker.jobs for worker in self.workers)
        return self._keep_spare and not self._spare_died and self.spare is None and calm

    def in_turn(self, jobs: Iterable[LocalJob]) -> list[LocalJob]:
        """Jobs that wait, those of users with the fewest busy workers first, else in their order."""
        return sorted(jobs, key=self._shares.used)

    def place(self, job: LocalJob, *, wanted: Set[str]) -> WorkerProcess | None:
        """Find the worker for a job, if one is free for it now; the caller gives it the job.

        Args:
            job: The job.
            wanted: Fingerprints whose workers may not be ended to make room.
        """
        if self._shares.are_used_up(job):
            return None
        worker, outside = self._owner(job), job.outside or NOTHING
        if worker and not worker.jobs and not outside <= worker.outside:
            self.drop(worker)  # its sandbox cannot be widened
            worker = None
        if worker is None or (worker.jobs and isinstance(job.request, OpenRequest)):
            worker = self._fresh(network=_downloads(job), outside=outside, wanted=wanted)
        if worker is None or worker.jobs:
            return None
        self._requests += 1
        self._spare_died = False
        worker.used = self._requests
        if not isinstance(job.request, OpenRequest):
            worker.fingerprint = job.request.fingerprint
            worker.name = title([self._names.get(each, "") for each in job.request.about])
        return worker

    def why_waiting(self, job: LocalJob) -> str:
        """What a job without a worker is waiting for."""
        if self._shares.are_used_up(job):
            return "Waiting for your earlier requests to finish"
        if self._owner(job) and not isinstance(job.request, OpenRequest):
            return "Waiting for an earlier request to this checkpoint"
        return f"Waiting for a free worker: {len(self.busy)} are busy"

    def opened(self, worker: WorkerProcess, job: LocalJob, opened: Opened) -> None:
        """Keep the worker for the checkpoint that it opened, unless another has it already or will have it."""
        self._opened[opened.reference] = opened.fingerprint
        self._names[opened.fingerprint] = opened.name
        if isinstance(job.request, OpenRequest):
            self._opened[str(job.request.reference)] = opened.fingerprint
        used_up = worker.network or worker.spent
        if worker.fingerprint is None and not used_up and not self.of(opened.fingerprint):
            worker.fingerprint, worker.name = opened.fingerprint, opened.name

    def of(self, fingerprint: str | None) -> WorkerProcess | None:
        """The worker that holds a checkpoint."""
        if fingerprint is None:
            return None
        return next((w for w in self.workers if w.fingerprint == fingerprint), None)

    def about(self, fingerprint: str) -> list[WorkerProcess]:
        """The workers that hold a checkpoint, alone or with another."""
        return [w for w in self.workers if w.fingerprint and fingerprint in fingerprints_in(w.fingerprint)]

    def start_spare(self) -> None:
        """Start a spare, if the system lets us."""
        try:
            self.spare = self._begin()
        except OSError:  # no memory, or no process; the next request may try again
            self._spare_died = True

    def drop(self, worker: WorkerProcess) -> bool:
        """End a process; False if it was dropped before."""
        if worker not in self.all:
            return False
        if worker is self.spare:
            self.spare, self._spare_died = None, True  # the next request may try again
        else:
            self.workers.remove(worker)
        worker.jobs = ()
        worker.kill()
        return True

    def _owner(self, job: LocalJob) -> WorkerProcess | None:
        if not isinstance(job.request, OpenRequest):
            return self.of(job.request.fingerprint)
        if _downloads(job) or _is_packed(job):  # the process that opens it ends then
            return None
        return self.of(self._opened.get(str(job.request.reference)))

    def _fresh(self, *, network: bool, outside: Outside, wanted: Set[str]) -> WorkerProcess | None:
        if len(self.workers) >= self._limit and not self._evict(wanted):
            return None
        if network or outside or self.spare is None:
            worker = self._begin(network, outside)
        else:
            worker, self.spare = self.spare, None
        self.workers.append(worker)
        return worker

    def _begin(self, network: bool = False, outside: Outside = NOTHING) -> WorkerProcess:
        """Start a process. The first, and a second one beside it, are to answer soon; more will pay off."""
        self._started += 1
        soon = 1 if self._keep_spare and not outside else 2
        return self._start(network, WARM if self._started > soon else NOW, outside)

    def _evict(self, wanted: Set[str]) -> bool:
        idle = [w for w in self.workers if not w.jobs and w.fingerprint not in wanted]
        return bool(idle) and self.drop(min(idle, key=lambda worker: worker.used))


def _is_packed(job: LocalJob) -> bool:
    return isinstance(job.request, OpenRequest) and is_archive(job.request.reference.value)


def _downloads(job: LocalJob) -> bool:
    return isinstance(job.request, OpenRequest) and job.request.downloads
