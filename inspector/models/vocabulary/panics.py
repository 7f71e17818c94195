"""Keep a native library's panic off stderr: the error that it raises is enough."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import BinaryIO

STDERR = 2
_TURN = RLock()  # the descriptor is the whole process's


@contextmanager
def unprinted() -> Iterator[None]:
    """Drop what is printed on stderr if a library panics; anything else is printed afterwards.

    Rust prints its panics from native code, where Python's `sys.stderr` has no say.
    """
    with _TURN, tempfile.TemporaryFile() as printed:
        try:
            stderr = os.dup(STDERR)
        except OSError:  # closed: nothing can be printed
            yield
            return
        os.dup2(printed.fileno(), STDERR)
        panicked = False
        try:
            yield
        except BaseException as error:
            panicked = not isinstance(error, Exception | KeyboardInterrupt | SystemExit)
            raise
        finally:
            os.dup2(stderr, STDERR)
            os.close(stderr)
            if not panicked:
                _print(printed)


def _print(printed: BinaryIO) -> None:
    if printed.seek(0, os.SEEK_END):
        printed.seek(0)
        with open(STDERR, "wb", closefd=False) as stderr:
            shutil.copyfileobj(printed, stderr)
