"""What every engine offers to the pages and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from inspector.results import Opened
from inspector.store.reference import CheckpointRef

T_co = TypeVar("T_co", covariant=True)
Status = Literal["waiting", "running", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job has come."""

    fraction: float | None  # 0..1; None while nobody can tell
    text: str  # what is being done, for the person who waits


class Job(Protocol[T_co]):
    """Work under way; every method may be called from any thread."""

    id: str

    @property
    def status(self) -> Status:
        """Where the job stands."""
        ...

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        ...

    def result(self, timeout: float | None = None) -> T_co:
        """Wait for the result.

        Raises:
            InspectorError: What went wrong, as text to show.
            TimeoutError: If the result is not there after `timeout` seconds; the job goes on.
        """
        ...

    def cancel(self) -> None:
        """Stop the work; `result` then raises CancelledError. Finished work stays finished."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker process, for the status line."""

    fingerprint: str | None  # None: the warm spare
    pid: int
    resident_nbytes: int
    busy: bool


class Engine(Protocol):
    """Runs staging and analyses somewhere else than in the calling process."""

    def open(self, reference: CheckpointRef) -> Job[Opened]:
        """Stage a checkpoint and read its headers; builds no model."""
        ...

    def run(self, fingerprint: str, verb: str, **parameters: Any) -> Job[Any]:
        """Run the catalog's analysis `verb` on an opened checkpoint.

        Asking again for what is under way or done with the same parameters gives the same job.
        """
        ...

    def job(self, job_id: str) -> Job[Any] | None:
        """Find a job again, for a page that reloads while it waits."""
        ...

    def forget(self, fingerprint: str) -> None:
        """Drop what is held of a checkpoint that was deleted."""
        ...

    def release(self, fingerprint: str) -> bool:
        """Give back the memory that a checkpoint takes; the next question loads it anew.

        Returns:
            False if it takes none, or is at work and was left to it.
        """
        ...

    def workers(self) -> tuple[WorkerStatus, ...]:
        """The worker processes, the spare last."""
        ...

    def close(self) -> None:
        """End every worker."""
        ...
