"""Who asks, and how many workers one of them may keep busy where several do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Protocol

_ASKER: ContextVar[str] = ContextVar("asker", default="")  # empty: alone here, so nobody has to wait


class _Asked(Protocol):
    @property
    def askers(self) -> set[str]: ...


def asker() -> str:
    """Whose questions this thread asks; empty: there is one user only."""
    return _ASKER.get()


def ask_as(name: str) -> None:
    """Ask in somebody's name from now on, in this thread and in those that copy its context."""
    _ASKER.set(name)


class Shares:
    """One worker at least is left to others: nobody keeps all of them busy.

    Args:
        limit: Workers at once.
        working: The jobs of each busy worker.
    """

    def __init__(self, limit: int, working: Callable[[], Iterable[Iterable[_Asked]]]) -> None:
        self._most = max(1, limit - 1)
        self._working = working

    def are_used_up(self, job: _Asked) -> bool:
        """Whether all who ask for a job keep as many workers busy as they may."""
        return all(name and self._held(name) >= self._most for name in job.askers)

    def used(self, job: _Asked) -> int:
        """Workers that are busy for those who ask for a job; of several, for the one with the fewest."""
        return min((self._held(name) for name in job.askers if name), default=0)

    def _held(self, name: str) -> int:
        return sum(all(job.askers == {name} for job in jobs) for jobs in self._working())
