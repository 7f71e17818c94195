"""What must hold for every input: a result, or one clear sentence, and nothing else touched."""

from __future__ import annotations

import atexit
import os
import re
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from inspector.errors import InspectorError
from tools.fuzz.targets import TARGETS, prepare
from tools.fuzz.watch import watched

EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Interrupt)\b")  # what Python calls one
MAX_SENTENCE = 600  # characters
MAX_GROWTH_KB = 400_000  # of resident memory, by one small input
MAX_SECONDS = 60.0  # of processor time, by one small input: ten thousand times what one takes


def outcome(target: str, data: bytes) -> str | None:
    """Give an input to a target in an empty folder.

    Returns:
        The sentence that refused it; None where it was read.

    Raises:
        AssertionError: If the sentence is none, or it took too much, or touched what it may not.
        BaseException: Whatever the target raised that is no InspectorError.
    """
    prepare(target)
    folder = _folder()
    grown, spent = _resident_kb(), time.process_time()
    try:
        with watched(folder), _temporary(folder):
            sentence = _sentence(target, data, folder)
        assert sentence is None or str(folder) not in sentence, "a path of the server"
    finally:
        _empty(folder)
    assert _resident_kb() - grown < MAX_GROWTH_KB, "memory"
    assert time.process_time() - spent < MAX_SECONDS, "time"
    return sentence


@contextmanager
def _temporary(folder: Path) -> Iterator[None]:
    """Have temporary files there, as a worker has them in its own folder."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


@cache
def _folder() -> Path:
    """One for all inputs, emptied after each; in memory where there is such a place."""
    memory = Path("/dev/shm")
    folder = tempfile.mkdtemp(prefix="fuzz-", dir=memory if os.access(memory, os.W_OK) else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _sentence(target: str, data: bytes, folder: Path) -> str | None:
    try:
        TARGETS[target](data, folder)
    except InspectorError as error:
        return checked(str(error))
    return None


def checked(sentence: str) -> str:
    """A sentence for a person: one line, printable, ended, short enough to be read."""
    assert sentence.isprintable(), f"unprintable: {sentence!r}"
    assert sentence.endswith("."), f"unfinished: {sentence!r}"
    assert len(sentence) <= MAX_SENTENCE, f"{len(sentence)} characters"
    assert not EXCEPTION.search(sentence), f"an exception's name: {sentence!r}"
    assert "Traceback" not in sentence, f"a traceback: {sentence!r}"
    return sentence


def _resident_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
