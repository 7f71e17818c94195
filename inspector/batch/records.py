"""Keep what a batch has answered, a line each, so that an interrupted run goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from inspector.batch.asking import BatchEntry
from inspector.errors import RequestError, cannot_write
from inspector.store.files import lock_whole

FIELDS = ("question", "identity", "status")  # that every line has
START = b'{"question"'  # of every line, so a torn first one is known


class Records:
    """A file of JSON lines; every line is on the disk before the next checkpoint is taken.

    A line that was cut off is dropped. Lines of other questions stay, and mean nothing here. Use
    it as a context manager: one process has the file at a time.

    Args:
        path: The file; None: nothing is kept.
        question: What is asked: verb and parameters, plain values.

    Raises:
        RequestError: If the file cannot be written, is in use, or is something else.
    """

    def __init__(self, path: Path | None, question: Mapping[str, Any]) -> None:
        self._question = json.loads(json.dumps(question))  # as it will be read back
        self._lines: dict[str, dict[str, Any]] = {}  # identity -> its last line
        self._descriptor = None if path is None else self._take(path)

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def known(self, identity: str | None) -> dict[str, Any] | None:
        """The line of a checkpoint that has answered, and whose files are still the same."""
        line = self._lines.get(identity or "")
        return line if line and line["status"] == "done" else None

    def known_by(self, fingerprint: str, name: str) -> dict[str, Any] | None:
        """The same where the files' content tells: they were copied, or come from the hub."""
        for line in list(self._lines.values()):  # another thread adds
            same = (line.get("fingerprint"), line.get("name")) == (fingerprint, name)
            if same and line["status"] == "done":
                return line
        return None

    def add(self, entry: BatchEntry) -> dict[str, Any]:
        """Write what came of a checkpoint; gives the line.

        Args:
            entry: Its result is plain JSON values.
        """
        line = {"question": self._question, "identity": entry.snapshot.identity, **describe(entry)}
        self._lines[entry.snapshot.identity or f"fingerprint {line['fingerprint']}"] = line
        if self._descriptor is not None:
            text = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
            data = text.encode(errors="backslashreplace")
            while data:  # a pipe or a full disk may take a part of it
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        return line

    def _take(self, path: Path) -> int:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            if not lock_whole(descriptor):
                raise RequestError(f"Another run is writing {path.name}: wait until it ends, or choose another file.")
            self._read(descriptor, path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _read(self, descriptor: int, path: Path) -> None:
        lines = path.read_bytes().split(b"\n")
        torn = lines.pop()  # what follows the last end of a line
        for number, text in enumerate(lines):
            line = _parse(text)
            if line is None and number == 0 and not _is_torn(text):
                raise _not_ours(path)
            if line is not None and line["question"] == self._question:
                self._lines[line["identity"] or f"fingerprint {line.get('fingerprint')}"] = line
        if torn and not lines and not _is_torn(torn):
            raise _not_ours(path)
        if torn:
            os.ftruncate(descriptor, sum(map(len, lines)) + len(lines))


def describe(entry: BatchEntry) -> dict[str, Any]:
    """One checkpoint of the command line's JSON."""
    opened = entry.opened
    line = {
        "checkpoint": entry.snapshot.name,
        "name": opened.name if opened else None,
        "step": entry.snapshot.step,
        "fingerprint": opened.fingerprint if opened else None,
        "status": entry.status,
    }
    return line | ({"result": entry.result} if entry.status == "done" else {"error": entry.error})


def _parse(text: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or any(field not in line for field in FIELDS):
        return None
    return line


def _is_torn(text: bytes) -> bool:
    """Whether a text may be what is left of a line."""
    return bool(text) and START.startswith(text[: len(START)])


def _not_ours(path: Path) -> RequestError:
    return RequestError(f"{path.name} does not contain results of this command: choose another file.")
