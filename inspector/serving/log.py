"""The server's log: what happened, when, to which checkpoint and by whom; no secret, and no text that somebody typed.

Names of people are what the sign-in provider or the proxy calls them; without sign-in, and of owners, the first digits
of a digest. `INSPECTOR_LOG` chooses lines of text or of JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal

LogLines = Literal["text", "json"]
OURS = "inspector"  # the loggers below it
LOG = logging.getLogger(f"{OURS}.server")
DIGITS = 12  # of a digest
MOST_LINES, A_SECOND = 1_000, 10.0  # whoever causes lines without end does not fill the disk


def record(action: str, **facts: str | float) -> None:
    """Note something that happened, with what is known of it; facts that are empty are left out."""
    LOG.info(action, extra={"facts": {name: value for name, value in facts.items() if value != ""}})


def digest(secret: str) -> str:
    """What stands for a secret, or for a fingerprint that opens an upload; empty for an empty one."""
    return sha256(secret.encode()).hexdigest()[:DIGITS] if secret else ""


def start_log(lines: LogLines) -> None:
    """Have this process write its log to stderr, in lines of one kind."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(lines))
    handler.addFilter(_Bounded())
    ours = logging.getLogger(OURS)
    ours.handlers, ours.propagate = [handler], False
    ours.setLevel(logging.INFO)


class _Lines(logging.Formatter):
    def __init__(self, lines: LogLines) -> None:
        super().__init__()
        self._as_json = lines == "json"

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        what, facts = record.getMessage(), getattr(record, "facts", {})
        if self._as_json:
            return json.dumps({"time": when, "what": what, **facts})
        return " ".join([when, what, *(f"{name}={json.dumps(value)}" for name, value in facts.items())])


class _Bounded(logging.Filter):
    """So many lines of each kind, so that none hides the others; the next one that passes says how many did not."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = time.monotonic()
        self._seen: dict[tuple[str, str], tuple[int, int]] = {}  # logger and message -> lines that passed, and not

    def filter(self, record: logging.LogRecord) -> bool:
        kind = (record.name, str(record.msg))  # a constant: what differs stands in the facts
        passed, left_out = self._seen.get(kind, (0, 0))
        if passed >= MOST_LINES + A_SECOND * (time.monotonic() - self._begun):
            self._seen[kind] = passed, left_out + 1
            return False
        if left_out:
            record.facts = {**getattr(record, "facts", {}), "left_out_before": left_out}
        self._seen[kind] = passed + 1, 0
        return True
