"""Jobs and the book that finds them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import CancelledError, RequestError, WorkerError
from inspector.results.checkpoint import Opened
from inspector.serving.engine.jobs import JobBook, LocalJob, freeze
from inspector.serving.engine.wire import OpenRequest, RunRequest
from inspector.store.reference import CheckpointRef


def job(key, *, fingerprint="ab", keep=True):
    request = RunRequest(fingerprint, "m:f", {})
    return LocalJob(key, request, keep=keep, stop=lambda job: None)


def done(book, key, *, nbytes=1, **options):
    made = job(key, **options)
    book.add(made)
    made.succeed(key, nbytes)
    book.settled(made)
    return made


def test_parameters_are_equal_exactly_if_value_and_type_are():
    assert freeze({"a": [1, (2,)], "b": None}) == freeze({"b": None, "a": (1, [2])})
    different = [1, 1.0, True, "1", b"1", None, [1], {"1": 1}, Path("1"), [[1]], [1, 1]]
    assert len({freeze(value) for value in different}) == len(different)


def test_parameters_that_cannot_be_compared_are_refused():
    with pytest.raises(TypeError):
        freeze({"a": {1, 2}})


def test_a_result_is_found_by_id_and_by_what_was_asked():
    book = JobBook()
    made = done(book, "a")

    assert book.find(made.id) is made
    assert book.asked("a") is made
    assert book.find("other") is None


@pytest.mark.parametrize("error", [WorkerError("died"), CancelledError("stopped")])
def test_a_failure_is_found_by_id_alone(error):
    book = JobBook()
    made = job("a")
    book.add(made)
    made.fail(error)
    book.settled(made)

    assert book.find(made.id) is made
    assert book.asked("a") is None


def test_what_is_not_to_be_kept_is_asked_anew():
    book = JobBook()
    made = done(book, "a", keep=False)

    assert book.asked("a") is None
    assert book.find(made.id) is made


def test_the_least_recently_used_result_goes_first():
    book = JobBook(max_jobs=3)
    first, second = done(book, "a"), done(book, "b")
    done(book, "c")
    assert book.asked("a") is first
    done(book, "d")

    assert book.asked("b") is None
    assert book.find(second.id) is None
    assert [bool(book.asked(key)) for key in "acd"] == [True, True, True]


def test_results_are_bounded_by_their_bytes_and_the_newest_stays():
    book = JobBook(max_nbytes=100)
    done(book, "a", nbytes=60)
    done(book, "b", nbytes=40)
    done(book, "c", nbytes=30)
    assert [bool(book.asked(key)) for key in "abc"] == [False, True, True]

    done(book, "d", nbytes=500)
    assert [bool(book.asked(key)) for key in "bcd"] == [False, False, True]


def test_work_under_way_is_never_forgotten():
    book = JobBook(max_jobs=1)
    waiting = job("waiting")
    book.add(waiting)
    for key in "abc":
        done(book, key)

    assert book.asked("waiting") is waiting


def test_forgetting_a_checkpoint_forgets_its_results_and_how_it_was_opened():
    book = JobBook()
    about, other = done(book, "a"), done(book, "b", fingerprint="cd")
    opening = LocalJob(
        ("open", "demo-a"), OpenRequest(CheckpointRef("demo", "demo-a")), keep=True, stop=lambda job: None
    )
    book.add(opening)
    opening.succeed(Opened("ab", "demo-a", "demo-a", ()), 1)
    book.settled(opening, also="other name")
    book.forget("ab")

    assert book.asked("a") is None
    assert book.asked(("open", "demo-a")) is None
    assert book.asked("other name") is None
    assert book.find(about.id) is None
    assert book.asked("b") is other


def test_forgetting_a_checkpoint_forgets_what_it_was_compared_with():
    book = JobBook()
    request = RunRequest("ab", "package:compare", {"other": "cd"})
    comparison = LocalJob("comparison", request, keep=True, stop=lambda job: None)
    book.add(comparison)
    comparison.succeed("value", 1)
    book.settled(comparison)
    about = done(book, "a")
    book.forget("cd")

    assert book.asked("comparison") is None
    assert book.asked("a") is about


def test_a_settled_job_does_not_change():
    made = job("a")
    made.succeed("value", 1)
    made.fail(WorkerError("late"))

    assert (made.status, made.result(0), made.progress.fraction) == ("done", "value", 1.0)


def test_each_caller_gets_an_exception_of_its_own():
    made = job("a")
    made.fail(WorkerError("died"))
    raised = []
    for _ in range(2):
        with pytest.raises(WorkerError, match="died") as caught:
            made.result(0)
        raised.append(caught.value)

    assert raised[0] is not raised[1]


def test_a_request_that_is_too_long_is_refused_with_its_size():
    request = RunRequest("ab", "m:f", {"text": "x" * 1_000_001})
    with pytest.raises(RequestError, match=r"1,000,\d\d\d bytes, more.*shorten the text"):
        LocalJob("a", request, keep=True, stop=lambda job: None)
