"""Copy what our processes print to the server's log."""

from __future__ import annotations

import logging
import threading
import time
from typing import IO

from inspector.text import escaped

LOG = logging.getLogger("inspector.worker")
LOG_LINE = 1_000  # bytes of a process's line that are shown
MOST_LINES, A_SECOND = 1_000, 10  # of a process that are copied: at once, and for each second that it lives


def follow_log(pipe: IO[bytes] | None, what: str, pid: int) -> threading.Thread:
    """Copy in a thread of its own; see `copy_log`."""
    thread = threading.Thread(target=copy_log, args=(pipe, what, pid), name=f"{what} {pid} log", daemon=True)
    thread.start()
    return thread


def copy_log(pipe: IO[bytes] | None, what: str, pid: int) -> None:
    """Copy what a process prints to the server's log, line by line, without control codes.

    One that prints without end neither fills the log nor has to wait.
    """
    if pipe is None:
        return
    begun, copied, dropped = time.monotonic(), 0, 0
    with pipe:
        while line := pipe.readline(LOG_LINE):
            if copied >= MOST_LINES + A_SECOND * (time.monotonic() - begun):
                dropped += 1
                continue
            copied += 1
            text = line.decode("utf-8", "replace").rstrip("\n")
            LOG.warning("%s %d: %s", what, pid, escaped(text))
    if dropped:
        LOG.warning("%s %d: %d more lines were left out", what, pid, dropped)
