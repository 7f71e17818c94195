"""Files that browsers send: written to the disk and hashed while they arrive."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from inspector.errors import CheckpointError
from inspector.settings import Settings
from inspector.store import registry
from inspector.store.files import create_file
from inspector.store.hashing import remember
from inspector.store.keeping.quota import reserve_upload

ARRIVING = "arriving"


class Received:
    """A file that a browser sent: on the disk until nothing refers to this object any more.

    Args:
        path: Where the file is; None: it could not be stored.
        nbytes: What arrived.
        trouble: Why it could not be stored.
        discard: Removes it.
    """

    def __init__(
        self,
        path: Path | None,
        nbytes: int,
        *,
        trouble: CheckpointError | OSError | None = None,
        discard: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        self.nbytes = nbytes
        self.trouble = trouble
        weakref.finalize(self, discard)


class Arriving:
    """Writes a file into the store, and hashes it. A failure is kept for the end.

    Args:
        nbytes: Size of the file at most, as the browser says.
        settings: Of the store.
    """

    def __init__(self, nbytes: int, settings: Settings) -> None:
        self._settings = settings
        self._nbytes = 0
        self._upload = ""
        self._path: Path | None = None
        self._trouble: CheckpointError | OSError | None = None
        self._digest = hashlib.sha256()
        self._file: BinaryIO | None = None
        try:
            self._upload, folder = reserve_upload(nbytes, settings)
            self._path = folder / ARRIVING
            self._file = create_file(self._path)
        except (CheckpointError, OSError) as error:
            self._give_up(error)

    def write(self, data: bytes | bytearray) -> None:
        """Add to the file; after a failure, count only."""
        self._nbytes += len(data)
        if self._file:
            try:
                self._file.write(data)
                self._digest.update(data)
            except OSError as error:
                self._give_up(error)

    def close(self) -> Received:
        """Complete the file, and have its SHA-256 remembered."""
        if self._file and self._path:
            try:
                self._file.close()
                remember(self._path, self._digest.hexdigest())
                return Received(self._path, self._nbytes, discard=self.discard)
            except OSError as error:
                self._give_up(error)
        return Received(None, self._nbytes, trouble=self._trouble)

    def discard(self) -> None:
        """Remove the file."""
        if self._file:
            with suppress(OSError):
                self._file.close()
        if self._upload:
            registry.discard_upload(self._upload, settings=self._settings)

    def _give_up(self, error: CheckpointError | OSError) -> None:
        self._trouble = error
        self.discard()
        self._file = self._path = None
