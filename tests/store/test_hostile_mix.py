"""Each of hundreds of bad checkpoints is refused in one sentence, or answered, with nothing else printed."""

from __future__ import annotations

import math
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from inspector.catalog import answer
from inspector.engine import limits
from inspector.errors import InspectorError
from inspector.models.checkpoint import Checkpoint
from inspector.settings import read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.store.hostile_mix import cases
from tools.fuzz.property import checked

SECONDS = 60  # of processor time for all questions about one checkpoint
SAMPLE = 12  # every so many of them is tried daily
QUESTIONS: dict[str, dict[str, Any]] = {
    "overview": {},
    "check": {},
    "tokenize": {"texts": ("w1 a w2", "w2")},
    "predict": {"text": "w1 [MASK] w2"},
    "lens": {"text": "w1 w2"},
}


@cache
def made() -> dict[str, Any]:
    return cases()


@contextmanager
def stderr() -> Iterator[Path]:
    """What is written to descriptor 2 meanwhile, by native libraries too."""
    with tempfile.NamedTemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield Path(file.name)
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def told(act: Any) -> tuple[Any, str | None]:
    """A result, or the sentence in its place: as a worker tells an error."""
    try:
        return act(), None
    except InspectorError as error:
        return None, checked(str(error))
    except BaseException as error:
        if known := limits.explain(error, read_settings({})):
            return None, checked(str(known))
        raise


def outcomes(path: Path, home: Path) -> dict[str, str | None]:
    """What is said of a checkpoint, question by question; None: it is answered."""
    settings = read_settings({"INSPECTOR_HOME": str(home)})
    reference = CheckpointRef("path", str(path))
    opened, sentence = told(
        lambda: open_checkpoint(reference, settings=settings, progress=silent, restrict_paths=False)
    )
    found = {"open": sentence}
    if opened is None:
        return found
    checkpoint = Checkpoint(opened[0], settings=settings)
    for verb, asked in QUESTIONS.items():
        result, found[verb] = told(partial(answer, verb, checkpoint, **asked, progress=silent))
        if result is not None and verb == "predict":
            shown = [value for mask in result.masks for value in mask.predictions["probability"]]
            assert all(math.isfinite(value) and 0 <= value <= 1 for value in shown)
    return found


def _too_long(*_: Any) -> None:
    raise AssertionError("it takes too long")


def tried(name: str, folder: Path) -> dict[str, str | None]:
    """Try one case."""
    (folder / "case").mkdir()
    path = made()[name](folder / "case")
    before = signal.signal(signal.SIGVTALRM, _too_long)
    with stderr() as printed:
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            found = outcomes(path, folder / "home")
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
        assert printed.read_text("utf-8", "replace") == ""
    return found


def test_there_are_enough_of_each_kind():
    assert len(made()) >= 350


def each() -> Iterator[Any]:
    """The cases by name; the daily loop tries a sample."""
    for number, name in enumerate(sorted(made())):
        yield pytest.param(name, marks=() if number % SAMPLE == 0 else pytest.mark.fuzz)


@pytest.mark.parametrize("name", each())
def test_each_is_handled(name, tmp_path):
    tried(name, tmp_path)
