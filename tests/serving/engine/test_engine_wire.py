"""The worker's pipe: each answer is read as the class that its question returns, and as no other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import CheckpointError
from inspector.results.checkpoint import Opened
from inspector.sandbox.confinement import Confinement
from inspector.serving.encoding import DecodeError, decode, encode
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.wire import (
    MAX_TEXT,
    SAID,
    Answers,
    Failure,
    Fetched,
    OpenRequest,
    Partial,
    Ready,
    RunRequest,
    Setup,
    Warm,
    WorkerFunctions,
    read_outcomes,
    read_progress,
)
from inspector.settings import read_settings
from inspector.store.reference import CheckpointRef

OPENED = Opened("ab" * 32, "demo-a", "demo-a", ("one",))
OPEN = OpenRequest(CheckpointRef("demo", "demo-a"))


@dataclass(frozen=True)
class About:
    """An answer about two checkpoints."""

    fingerprint: str
    other_fingerprint: str


@pytest.mark.parametrize(
    "message",
    [
        Warm(),
        Progress(None, "reading"),
        Partial(3, b"encoded by itself"),
        Failure("CheckpointError", "a.bin is empty: upload it again."),
        Failure("RequestError", "There is no layer 9.", "layers"),
        Answers.of([OPENED, CheckpointError("no")]),
        Ready(Confinement(True, True, False, ("Landlock",))),
    ],
)
def test_what_a_worker_says_comes_through(message):
    assert decode(encode(message), *SAID) == message


@pytest.mark.parametrize(
    "message",
    [
        OPEN,
        RunRequest("ab", "m:f", {"text": "a", "ids": (1, 2), "k": None, "words": ["x"]}, "m:g", ("ours",), "m:C"),
        Setup(read_settings({"INSPECTOR_HOME": "/home/x"}), WorkerFunctions(), restrict_paths=True),
    ],
)
def test_what_a_worker_is_asked_comes_through(message):
    assert decode(encode(message), type(message)) == message


@pytest.mark.parametrize(
    ("value", "asked"),
    [
        (OPENED, RunRequest("ab", "", {}, result="inspector.analyses.overview.result:Overview")),
        (OPENED, RunRequest("ab", "", {})),
        ({"a": 1}, RunRequest("ab", "", {}, result="inspector.analyses.overview.result:Overview")),
        (1, OPEN),
        (Warm(), OPEN),
    ],
)
def test_the_answer_to_another_question_is_refused(value: Any, asked):
    with pytest.raises(DecodeError):
        read_outcomes(Answers.of([value]), [asked])


@pytest.mark.parametrize("name", ["annotations", "Exception", "__doc__", "no such error"])
def test_a_failure_names_an_error_of_ours(name):
    with pytest.raises(DecodeError):
        read_outcomes(Failure(name, "x"), [OPEN])


@pytest.mark.parametrize("fraction", [float("nan"), float("inf"), -0.1, 1.1, 10**400])
def test_progress_that_no_bar_can_show_has_no_fraction(fraction):
    assert read_progress(decode(encode(Progress(fraction, "x")), *SAID)) == Progress(None, "x")


def test_progress_is_one_short_line():
    said = read_progress(decode(encode(Progress(0.5, "\x1b[2J\ud800\n" + "x" * 10**6)), *SAID))
    assert said.text.isprintable()
    assert len(said.text) < 2 * MAX_TEXT


def test_a_failure_is_one_short_sentence():
    (error,) = read_outcomes(Failure("RequestError", "\x1b" + "x" * (MAX_TEXT - 2) + ".", "o" * 10**6), [OPEN])
    assert str(error).isprintable()
    assert len(str(error)) + len(error.option) < 2 * MAX_TEXT
    for text in ("", "not ended", "x" * MAX_TEXT + "."):
        with pytest.raises(DecodeError):
            read_outcomes(Failure("RequestError", text), [OPEN])


@pytest.mark.parametrize("warnings", [("x",) * 10_000, ("x" * 10_000,)])
def test_a_worker_that_warns_without_end_is_not_believed(warnings):
    with pytest.raises(DecodeError):
        read_outcomes(Answers.of([Opened("ab" * 32, "demo-a", "demo-a", warnings)]), [OPEN])


FINGERPRINT = "ab" * 32
OTHER = "cd" * 32


@pytest.mark.parametrize(
    ("asked", "fingerprint", "reference"),
    [
        ("demo-a", FINGERPRINT, "demo-b"),
        ("demo-a", "../../elsewhere", "demo-a"),
        ("path:/a", FINGERPRINT, f"upload:{FINGERPRINT}"),
        (f"upload:{FINGERPRINT[:12]}", OTHER, f"upload:{OTHER}"),
        (f"upload:{FINGERPRINT}", OTHER, f"upload:{FINGERPRINT}"),
        (f"incoming:{'0' * 32}", FINGERPRINT, f"upload:{OTHER}"),
        (f"snapshots:{'0' * 32}", FINGERPRINT, "demo-a"),
    ],
)
def test_a_worker_that_opens_something_else_is_not_believed(asked: str, fingerprint: str, reference: str):
    request = OpenRequest(CheckpointRef.parse(asked))
    with pytest.raises(DecodeError):
        read_outcomes(Answers.of([Opened(fingerprint, reference, "demo-a", ())]), [request])


@pytest.mark.parametrize(
    "version", ["", "main", "a" * 39, "A" * 40, "../" + "a" * 40, "a" * 40 + "/..", "a" * 40 + "\n"]
)
def test_a_version_of_the_hubs_is_a_plain_name(version: str):
    request = OpenRequest(CheckpointRef("hub", "a/b"))
    with pytest.raises(DecodeError):
        read_outcomes(Answers.of([Fetched(version)]), [request])
    with pytest.raises(DecodeError):  # it is not opened by who downloads it
        read_outcomes(Answers.of([Opened(FINGERPRINT, "hub:a/b", "b", ())]), [request])
    assert read_outcomes(Answers.of([Fetched("a" * 40)]), [request]) == [Fetched("a" * 40)]


@pytest.mark.parametrize(
    ("asked", "reference"),
    [
        ("demo-a", "demo-a"),
        ("path:/a", "path:/a"),
        (f"upload:{FINGERPRINT[:12]}", f"upload:{FINGERPRINT}"),
        (f"incoming:{'0' * 32}", f"upload:{FINGERPRINT}"),
        (f"snapshots:{'0' * 32}", f"upload:{FINGERPRINT}"),
    ],
)
def test_what_was_asked_for_is_believed(asked: str, reference: str):
    opened = Opened(FINGERPRINT, reference, "demo-a", ())
    assert read_outcomes(Answers.of([opened]), [OpenRequest(CheckpointRef.parse(asked))]) == [opened]


def test_a_model_of_the_hub_is_opened_once_it_is_here():
    opened = Opened(FINGERPRINT, "hub:a/b", "b", ())
    request = OpenRequest(CheckpointRef("hub", "a/b"), fetched=Path("/cache/b"))
    assert read_outcomes(Answers.of([opened]), [decode(encode(request), OpenRequest)]) == [opened]
    with pytest.raises(DecodeError):
        read_outcomes(Answers.of([replace(opened, reference="hub:a/c")]), [request])


@pytest.mark.parametrize(("field", "wrong"), [("fingerprint", "cd" * 32), ("other_fingerprint", "ab" * 32)])
def test_an_answer_about_another_checkpoint_is_not_believed(field, wrong):
    """A worker that was taken over would have its numbers shown under another checkpoint's name."""
    asked = RunRequest("ab" * 32, "package:function", {"other": "cd" * 32}, result=f"{__name__}:About")
    right = About("ab" * 32, "cd" * 32)
    assert read_outcomes(Answers.of([right]), [asked]) == [right]
    with pytest.raises(DecodeError, match="about another checkpoint"):
        read_outcomes(Answers.of([replace(right, **{field: wrong})]), [asked])
