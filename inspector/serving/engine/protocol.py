"""What every engine offers to the pages and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from inspector.results.checkpoint import Opened
from inspector.sandbox.confinement import Confinement
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

    @property
    def partial(self) -> Any:
        """What is known of the result so far; None: nothing, or the job is settled."""
        ...

    def result(self, timeout: float | None = None) -> T_co:
        """Wait for the result.

        Raises:
            InspectorError: What went wrong, as text to show.
            TimeoutError: If the result is not there after `timeout` seconds; the job goes on.
        """
        ...

    def cancel(self) -> None:
        """Stop waiting in this tab; when no tab waits, the work ends, and `result` raises CancelledError.

        Finished work stays finished.
        """
        ...


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker process, for the status line."""

    fingerprint: str | None  # None: the warm spare
    pid: int
    memory_nbytes: int  # its own, mapped files left out
    busy: bool
    name: str = ""  # of the checkpoint; empty: the spare, or not opened yet
    cpu_seconds: float = 0.0  # of processor time since the process was started
    threads: int = 0
    confinement: Confinement | None = None  # None: it is not up yet
    node: str = ""  # of the cluster, first digits of its id; empty: this server


@dataclass(frozen=True, slots=True)
class Ending:
    """How a worker ended unexpectedly."""

    when: str  # ISO 8601, UTC
    name: str  # of the checkpoint; empty: it had opened none
    reason: str  # the sentence that was shown


class Engine(Protocol):
    """Runs staging and analyses outside the calling process."""

    def open(self, reference: CheckpointRef, *, whole: bool = False) -> Job[Opened]:
        """Stage a checkpoint and read its headers; builds no model.

        Args:
            reference: Of any kind.
            whole: True: a model of the hub is fetched with its numbers; False: its headers do, where it is large.
        """
        ...

    def run(self, fingerprint: str, verb: str, *, called: Sequence[str] = (), **parameters: Any) -> Job[Any]:
        """Run the catalog's analysis `verb` on an opened checkpoint.

        Equal files have one fingerprint and may have many names, one for each who opened them.

        Args:
            fingerprint: The checkpoint's; of a base with an adapter on it, both as `pairs.joined` writes them.
            verb: Names the analysis.
            called: What the result calls the checkpoint, or base and adapter, and the second one where there is
                one; empty: as they were called when their files were last opened.
            parameters: The analysis' own.

        Asking again for what is under way or done with the same parameters gives the same job.
        """
        ...

    def job(self, job_id: str) -> Job[Any] | None:
        """Find a job again, for a page that waits for it: again after a reload, or with others."""
        ...

    def forget(self, fingerprint: str) -> None:
        """Drop everything kept about a deleted checkpoint."""
        ...

    def release(self, fingerprint: str) -> bool:
        """Free the memory that a checkpoint uses; the next question loads it again.

        Returns:
            False if it uses none, or is working and was left running.
        """
        ...

    def workers(self) -> tuple[WorkerStatus, ...]:
        """The worker processes, the spare last."""
        ...

    def endings(self) -> tuple[Ending, ...]:
        """How the last workers ended that were not ended on purpose, newest first."""
        ...

    def close(self) -> None:
        """End every worker."""
        ...
