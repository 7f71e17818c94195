"""Partial answers: the latest is there while the work goes on, and a worker that lies with one is ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from inspector.analyses.masked_lm.result import Mask
from inspector.errors import WorkerError
from inspector.results.checkpoint import Opened
from inspector.serving.encoding import DecodeError, encode
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.wire import MAX_PARTIAL, MOST_PARTIALS, OpenRequest, Partial, RunRequest, read_partial
from inspector.settings import read_settings
from inspector.store.reference import CheckpointRef
from tests.serving.engine import engine_lies
from tests.serving.engine.engine_harness import WAIT, A, answer, eventually, running
from tests.serving.engine.engine_stand_ins import CATALOG, FUNCTIONS

ABOUT = "inspector.results.checkpoint:Opened"  # a class that names its checkpoint
ASKED = RunRequest("ab" * 32, "m:f", {}, partial=ABOUT)
PART = Opened("ab" * 32, "demo-a", "demo-a", ())


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    with running() as started:
        yield started


def test_the_latest_partial_answer_is_there_until_the_answer_is(engine, tmp_path):
    marker = tmp_path / "go"
    job = engine.run(A, "show_parts", rows=[3, 5], marker=str(marker))
    eventually(lambda: job.progress.text == "shown")
    part = job.partial
    assert isinstance(part, Mask)
    assert part.predictions["token"].tolist() == ["␣0", "␣1", "␣2", "␣3", "␣4"]
    assert job.partials == 2
    marker.touch()
    assert job.result(WAIT).position == 8
    assert job.partial is None


def test_the_watchers_are_told_of_a_partial_answer(engine, tmp_path):
    marker = tmp_path / "go"
    job = engine.run(A, "show_parts", rows=[1], marker=str(marker))
    seen = []
    job.watch(lambda: seen.append(job.partial is not None))
    eventually(lambda: job.progress.text == "shown")
    assert job.partial.position == 1
    marker.touch()
    job.result(WAIT)
    assert not seen[-1]  # it is settled


def test_a_worker_sends_no_partial_answer_that_is_too_large_and_the_next_one_counts(engine, tmp_path):
    """One row of the stand-in takes 16 bytes and more."""
    marker = tmp_path / "go"
    job = engine.run(A, "show_parts", rows=[MAX_PARTIAL // 16, 2], marker=str(marker))
    eventually(lambda: job.progress.text == "shown")
    assert (job.partial.position, job.partials) == (2, 1)
    marker.touch()
    job.result(WAIT)


def test_a_worker_sends_only_so_many(engine, tmp_path):
    marker = tmp_path / "go"
    job = engine.run(A, "show_parts", rows=[0] * MOST_PARTIALS + [1], marker=str(marker))
    eventually(lambda: job.progress.text == "shown")
    assert (job.partial.position, job.partials) == (0, MOST_PARTIALS)
    marker.touch()
    job.result(WAIT)


def test_canceling_leaves_no_partial_answer(engine, tmp_path):
    job = engine.run(A, "show_parts", rows=[3], marker=str(tmp_path / "go"))
    eventually(lambda: job.progress.text == "shown")
    job.cancel()
    assert job.status == "cancelled"
    assert job.partial is None


def test_a_question_that_names_no_partial_answer_is_not_given_a_way_to_show_one(engine, tmp_path):
    """`echo` takes no `show`: it would break down."""
    assert answer(engine, A, "echo", value=1)["value"] == 1
    assert not [each for each in CATALOG if each.partial and each.batch]


def test_a_partial_answer_is_read_as_the_class_that_the_question_shows():
    assert read_partial(Partial(7, encode(PART)), ASKED, number=7) == PART


@pytest.mark.parametrize(
    ("said", "asked", "number"),
    [
        (Partial(1, encode(PART)), replace(ASKED, partial=""), 1),
        (Partial(1, encode(PART)), OpenRequest(CheckpointRef("demo", "demo-a")), 1),
        (Partial(2, encode(PART)), ASKED, 1),
        (Partial(0, encode(PART)), ASKED, 1),
        (Partial(MOST_PARTIALS + 1, encode(PART)), ASKED, MOST_PARTIALS + 1),
        (Partial(1, encode(replace(PART, warnings=("x" * MAX_PARTIAL,)))), ASKED, 1),
        (Partial(1, encode("plain")), ASKED, 1),
        (Partial(1, b"\x80\x04."), ASKED, 1),
        (Partial(1, encode(replace(PART, fingerprint="cd" * 32))), ASKED, 1),
    ],
)
def test_a_partial_answer_that_lies_is_refused(said, asked, number):
    with pytest.raises(DecodeError):
        read_partial(said, asked, number=number)


@pytest.fixture
def liars(tmp_path) -> Iterator[LocalEngine]:
    """An engine whose workers put anything into their pipe."""
    functions = replace(FUNCTIONS, light=(engine_lies.__name__,))
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path / "home")})
    started = LocalEngine(settings, spare=False, catalog=engine_lies.CATALOG, functions=functions)
    try:
        yield started
    finally:
        started.close()


def test_what_a_liar_says_truly_is_believed(liars):
    said = [encode(engine_lies.MESSAGES[name]) for name in ("a part", "a second part")]
    job = liars.run(A, "say", said=said, end="hang")
    eventually(lambda: job.partials == 2)
    assert job.partial == Progress(None, "x")
    job.cancel()


@pytest.mark.parametrize(
    "said",
    [
        [Partial(1, encode("of another class"))],
        [Partial(2, encode(Progress(None, "out of turn")))],
        [Partial(1, encode(Progress(None, "once")))] * 2,
        [Partial(1, b"no message")],
    ],
)
def test_a_worker_that_lies_with_a_partial_answer_is_ended(liars, said):
    job = liars.run(A, "say", said=[encode(each) for each in said], end="hang")
    with pytest.raises(WorkerError, match=r"sent an invalid reply and was ended"):
        job.result(WAIT)
    assert job.partial is None
    eventually(lambda: not liars.workers())


def test_a_question_that_shows_nothing_is_shown_nothing(liars):
    """A partial answer is a lie, too, where the catalog names none."""
    with pytest.raises(WorkerError, match="sent an invalid reply"):
        liars.run(A, "lie", what="part").result(WAIT)
