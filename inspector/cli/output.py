"""A file that a command writes, opened before anything is computed and named when it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from inspector.errors import cannot_write


class Output:
    """A file under another name until it is finished; a child writes it by its descriptor.

    Raises:
        RequestError: If it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            self._descriptor: int | None = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        except OSError as error:
            raise cannot_write(path, error) from error

    @property
    def nbytes(self) -> int:
        """Bytes that were written."""
        return os.fstat(self.descriptor).st_size

    def read(self) -> bytes:
        """What was written."""
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        with self.file("rb") as file:
            return file.read()

    def write(self, data: bytes) -> None:
        """Write all that it holds.

        Raises:
            RequestError: If it cannot be written.
        """
        try:
            os.lseek(self.descriptor, 0, os.SEEK_SET)
            os.ftruncate(self.descriptor, 0)
            with self.file("wb") as file:
                file.write(data)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def file(self, mode: str) -> IO[bytes]:
        """The open file, for libraries that write it."""
        return open(self.descriptor, mode, closefd=False)

    def finish(self) -> None:
        """Give it its name.

        Raises:
            RequestError: If that cannot be.
        """
        self._close()
        try:
            self._part.replace(self.path)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def drop(self) -> None:
        """Remove it, unless it was finished."""
        if self._descriptor is not None:
            self._close()
        with suppress(OSError):
            self._part.unlink()

    @property
    def descriptor(self) -> int:
        """Of the open file."""
        if self._descriptor is None:
            raise ValueError("closed")
        return self._descriptor

    def _close(self) -> None:
        os.close(self.descriptor)
        self._descriptor = None


@contextmanager
def writing(path: Path) -> Iterator[Output]:
    """A file that gets its name if nothing goes wrong."""
    output = Output(path)
    try:
        yield output
        output.finish()
    finally:
        output.drop()
