"""Each question of a session is asked once: another place of the page, or a run that changes nothing, finds its job.

A session keeps no answers, only which job has them: the engine keeps those of all sessions within its bounds, and
forgets what was deleted, renamed or has changed on the disk. What it no longer has is asked again.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from streamlit.runtime.scriptrunner import get_script_run_ctx

from inspector.request import Request
from inspector.serving.engine.protocol import Engine, Job

ASKED, NOW = "asked", "asked_in_this_run"  # keys of a session's state
MOST = 64  # questions that a session remembers
LOST = ("failed", "cancelled")


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """All that an answer depends on."""

    fingerprint: str
    request: Request
    called: tuple[str, ...]  # the requester's names for the checkpoint, or its parts, and for what it is compared with


def begin_run(state: MutableMapping[Any, Any]) -> None:
    """Let what came to nothing be asked again."""
    state[NOW] = {}


def asked_now(state: MutableMapping[Any, Any]) -> tuple[PageQuestion, ...]:
    """What this run of the page has asked so far, in order."""
    return tuple(state.get(NOW, ()))


def settled(question: PageQuestion, state: MutableMapping[Any, Any], engine: Engine) -> Job[Any] | None:
    """The job that has answered a question; None where it was not asked, is under way, or came to nothing."""
    known = state.get(ASKED, {}).get(question)
    job = engine.job(known) if known else None
    return job if job and job.status == "done" else None


def job_of(question: PageQuestion, state: MutableMapping[Any, Any], engine: Engine) -> Job[Any]:
    """The job that answers a question; it is asked where none does.

    What fails or is canceled is asked again by the next run, and whenever a part of the page is drawn alone.
    """
    jobs, now = state.setdefault(ASKED, {}), state.setdefault(NOW, {})
    known = jobs.pop(question, None)
    job = engine.job(known) if known else None
    if job is None or (job.status in LOST and (question not in now or _is_drawn_alone())):
        job = engine.run(
            question.fingerprint, question.request.verb, called=question.called, **question.request.parameters()
        )
    now[question] = None
    jobs[question] = job.id
    for oldest in list(jobs)[:-MOST]:
        jobs.pop(oldest, None)
    return job


def _is_drawn_alone() -> bool:
    context = get_script_run_ctx()
    return bool(context and context.fragment_ids_this_run)
