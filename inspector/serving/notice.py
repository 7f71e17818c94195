"""What an administrator has this server tell everybody, and whether it takes no new work until it is restarted.

Both are forgotten when the server stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from threading import Lock

from inspector.errors import WorkerError
from inspector.serving.log import record

MOST_CHARACTERS = 500  # of a message
DRAINING = "This server takes no new work, since it is about to be restarted: try again in a few minutes."


@dataclass(frozen=True, slots=True)
class Notice:
    """What every page shows at its top."""

    message: str = ""  # empty: none
    draining: bool = False


_lock = Lock()
_begun = ContextVar("begun", default=False)
_shown = [Notice()]


def notice() -> Notice:
    """What is shown now."""
    return _shown[0]


def show(message: str, by: str) -> None:
    """Show a message on every page from its next run on; an empty one shows none. The log says who, and not what."""
    with _lock:
        _shown[0] = replace(_shown[0], message=message.strip()[:MOST_CHARACTERS])
    record("message" if notice().message else "no message", person=by)


def drain(draining: bool, by: str) -> None:
    """Take no new work, or take it again; what is under way goes on, and what is known is answered."""
    with _lock:
        _shown[0] = replace(_shown[0], draining=draining)
    record("drain" if draining else "no drain", person=by)


def refuse_new_work() -> None:
    """Say so where no new work is taken; what belongs to work that has begun is none.

    Raises:
        WorkerError: If none is.
    """
    if notice().draining and not _begun.get():
        raise WorkerError(DRAINING)


@contextmanager
def part_of_begun_work() -> Iterator[None]:
    """Count what is asked here, and in copies of this context, as part of work that has begun: it goes on."""
    token = _begun.set(True)
    try:
        yield
    finally:
        _begun.reset(token)
