"""Who asks, who still waits, and how many workers one of them may keep busy where several do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SessionTab:
    """Where somebody waits for an answer: one person may have several tabs."""

    id: str = ""  # empty: a program, which has one
    is_open: Callable[[], bool] = field(default=lambda: True, compare=False)


_ASKER: ContextVar[str] = ContextVar("asker", default="")  # empty: alone here, so nobody has to wait
_PROGRAM = SessionTab()
_TAB: ContextVar[SessionTab] = ContextVar("tab", default=_PROGRAM)


class _SharedJob(Protocol):
    @property
    def askers(self) -> set[str]: ...


def asker() -> str:
    """Whose questions this thread asks; empty: there is one user only."""
    return _ASKER.get()


def ask_as(name: str, tab: SessionTab | None = None) -> None:
    """Ask in somebody's name, and in a tab, from now on, in this thread and in those that copy its context."""
    _ASKER.set(name)
    _TAB.set(tab or SessionTab())


class Waiters:
    """The tabs that wait for work which they share; the one that begins it is the first."""

    def __init__(self) -> None:
        self._tabs = {_TAB.get()}

    def join(self) -> None:
        """Wait as well, in the tab of this thread."""
        self._tabs.add(_TAB.get())

    def leave(self) -> bool:
        """Stop waiting in the tab of this thread; True if no open tab waits any longer."""
        self._tabs.discard(_TAB.get())
        return not any(tab.is_open() for tab in tuple(self._tabs))


class Shares:
    """One worker at least is left to others: nobody keeps all of them busy.

    Args:
        limit: Workers at once.
        working: The jobs of each busy worker.
    """

    def __init__(self, limit: int, working: Callable[[], Iterable[Iterable[_SharedJob]]]) -> None:
        self._most = max(1, limit - 1)
        self._working = working

    def are_used_up(self, job: _SharedJob) -> bool:
        """Whether all who ask for a job keep as many workers busy as they may."""
        return all(name and self._held(name) >= self._most for name in job.askers)

    def used(self, job: _SharedJob) -> int:
        """Workers that are busy for those who ask for a job; of several, for the one with the fewest."""
        return min((self._held(name) for name in job.askers if name), default=0)

    def _held(self, name: str) -> int:
        return sum(all(job.askers == {name} for job in jobs) for jobs in self._working())
