"""Work that nobody waits for any longer is ended when another question takes its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages._ui import following
from pages._ui.following import begin_run, follow


class Work:
    """A job as a page knows it."""

    def __init__(self, status: str = "running") -> None:
        self.status = status

    def cancel(self) -> None:
        self.status = "cancelled"


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still unless a test turns it."""
    now = [100.0]
    monkeypatch.setattr(following, "clock", lambda: now[0])
    return now


def run(state: dict[Any, Any], *asked: tuple[str, Any]) -> None:
    """A script from its begin to its end, with the questions that it asks."""
    begin_run(state)
    for verb, job in asked:
        follow(job, verb, state)


def test_another_question_in_the_same_place_ends_long_work(seconds: list[float]) -> None:
    state, old, new = {}, Work(), Work()
    run(state, ("lens", old))
    seconds[0] += 10
    run(state, ("lens", old))  # the same question, asked again by a click elsewhere
    assert old.status == "running"
    run(state, ("lens", new))
    assert (old.status, new.status) == ("cancelled", "running")


def test_short_work_goes_on_and_what_has_not_begun_does_not(seconds: list[float]) -> None:
    for status, after in (("running", "running"), ("waiting", "cancelled"), ("done", "done"), ("failed", "failed")):
        state, old = {}, Work(status)
        run(state, ("lens", old))
        seconds[0] += following.SHORT_SECONDS
        run(state, ("lens", Work()))
        assert old.status == after
    seconds[0] += 0.1
    state, old = {}, Work("done")
    run(state, ("lens", old))
    seconds[0] += 100
    run(state, ("lens", Work()))
    assert old.status == "done"


def test_each_place_has_a_question_of_its_own(seconds: list[float]) -> None:
    state, first, second, other = {}, Work(), Work(), Work()
    run(state, ("lens", first), ("lens", second), ("sharing", other))
    seconds[0] += 10
    changed = Work()
    run(state, ("lens", changed), ("lens", second), ("sharing", other))
    assert [job.status for job in (first, second, other, changed)] == ["cancelled", "running", "running", "running"]
    run(state, ("masked_lm", Work()))  # another page: what it does not ask for may be wanted again
    assert [job.status for job in (second, other, changed)] == ["running"] * 3


def test_a_question_that_stands_in_two_places_ends_with_the_last(seconds: list[float]) -> None:
    state, twice = {}, Work()
    run(state, ("lens", twice), ("lens", twice))
    seconds[0] += 10
    run(state, ("lens", Work()), ("lens", twice))
    assert twice.status == "running"
    run(state, ("lens", Work()), ("lens", Work()))
    assert twice.status == "cancelled"


def test_what_somebody_else_follows_goes_on(seconds: list[float]) -> None:
    mine, theirs, shared = {}, {}, Work()
    run(mine, ("lens", shared))
    run(theirs, ("lens", shared))
    seconds[0] += 10
    run(mine, ("lens", Work()))
    assert shared.status == "running"
    run(theirs, ("lens", Work()))
    assert shared.status == "cancelled"


def test_a_session_that_is_gone_follows_nothing(seconds: list[float]) -> None:
    mine, gone, shared = {}, {}, Work()
    run(mine, ("lens", shared))
    run(gone, ("lens", shared))
    del gone
    seconds[0] += 10
    run(mine, ("lens", Work()))
    assert shared.status == "cancelled"


def test_a_page_says_which_questions_take_each_others_place(open_app: Callable[..., AppTest]) -> None:
    app = open_app("masked_lm", text="the king of [MASK].")
    first = app.session_state[following.PLACES]["predict", 0]()
    app.text_area[0].set_value("a house of [MASK].").run()
    second = app.session_state[following.PLACES]["predict", 0]()
    assert first is not second
    assert first.result().text != second.result().text
    app.run()
    assert app.session_state[following.PLACES]["predict", 0]() is second
