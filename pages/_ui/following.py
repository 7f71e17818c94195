"""Questions that take each other's place: work whose answer nobody waits for any longer is ended."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import MutableMapping
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

from inspector.serving.engine.protocol import Job

SHORT_SECONDS = 3.0  # work that has gone on for less is let go on: its worker keeps the model that it has loaded
PLACES, COUNTED, ME = "followed", "followed_in_this_run", "follower"  # keys of a session's state

clock = time.monotonic


class _Follower:
    """A session, for as long as its state is kept."""


_lock = threading.Lock()
_followers: WeakKeyDictionary[Job[Any], tuple[float, WeakSet[_Follower]]] = WeakKeyDictionary()


def begin_run(state: MutableMapping[Any, Any]) -> None:
    """Count a script's questions from the first again."""
    state[COUNTED] = Counter()
    state[PLACES] = {place: job for place, job in state.get(PLACES, {}).items() if job()}


def follow(job: Job[Any], verb: str, state: MutableMapping[Any, Any]) -> None:
    """Follow a question; the one that it replaces is ended, unless somebody else follows that.

    It replaces what this session's script asked last time in the same place: as its first question
    for this analysis, its second, and so on.

    Args:
        job: The question.
        verb: Its analysis.
        state: The session's.
    """
    counted, places = state.setdefault(COUNTED, Counter()), state.setdefault(PLACES, {})
    place = (verb, counted[verb])
    counted[verb] += 1
    me = state.setdefault(ME, _Follower())
    with _lock:
        before = places[place]() if place in places else None
        places[place] = ref(job)
        _followers.setdefault(job, (clock(), WeakSet()))[1].add(me)
        elsewhere = before in (kept() for kept in places.values())  # also the job itself, asked again
        replaced = before is not None and not elsewhere and _is_left(before, me)
    if replaced and before is not None:
        before.cancel()


def _is_left(job: Job[Any], me: _Follower) -> bool:
    """Whether nobody follows a job once I do not, and ending it saves work."""
    since, followers = _followers[job]
    followers.discard(me)
    worth_it = job.status == "waiting" or (job.status == "running" and clock() - since > SHORT_SECONDS)
    return not followers and worth_it
