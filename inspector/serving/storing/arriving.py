"""Files that browsers send: written to the disk and hashed while they arrive.

What stands at the beginning of a weight file, its header, is there after a moment, and the numbers
perhaps after an hour. `outline` makes a checkpoint of what is there: with names, and without numbers.
"""

from __future__ import annotations

import hashlib
import os
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from inspector.errors import CheckpointError
from inspector.progress import time_left
from inspector.serving.storing import registry
from inspector.serving.storing.room import check_room, grow_upload, reserve_upload
from inspector.settings import Settings
from inspector.store.files import create_file
from inspector.store.hashing import MAX_HEADER, PIECE, remember
from inspector.store.names import is_archive, weight_format
from inspector.store.origins.sources import choose_members
from inspector.text import bytes_text

ARRIVING = "content"  # the file, in its folder
FIRST_NBYTES = 4_000_000  # room for the beginning of a file; more is made as it comes
STEADY = 1.0  # seconds, from which the speed of a file can be told
LENGTH = 8  # bytes at the beginning of a safetensors file, which tell how long its header is


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
        owner: Who will own it; empty: everybody.

    Attributes:
        name: As the browser calls it; "" until that is known.
        expected: Its bytes, once they are known exactly.
    """

    def __init__(self, nbytes: int, settings: Settings, *, owner: str = "") -> None:
        self.name = ""
        self.expected = nbytes
        self._began = time.monotonic()
        self._settings = settings
        self._nbytes = 0
        self._most_nbytes, self._room = nbytes, min(nbytes, FIRST_NBYTES)
        self._upload = ""
        self._path: Path | None = None
        self._trouble: CheckpointError | OSError | None = None
        self._digest = hashlib.sha256()
        self._file: BinaryIO | None = None
        try:
            check_room(nbytes, settings, owner)
            self._upload, folder = reserve_upload(min(nbytes, FIRST_NBYTES), settings)
            self._path = folder / ARRIVING
            self._file = create_file(self._path)
        except (CheckpointError, OSError) as error:
            self._give_up(error)

    @property
    def path(self) -> Path | None:
        """Where its first bytes are; None: it could not be stored."""
        return self._path

    @property
    def nbytes(self) -> int:
        """What has arrived."""
        return self._nbytes

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    def expect(self, name: str, nbytes: int) -> None:
        """Note what the request says of the file before its first byte."""
        self.name, self.expected = name, nbytes

    def write(self, data: bytes | bytearray) -> None:
        """Add to the file; after a failure, count only."""
        self._nbytes += len(data)
        if self._file and self._path:
            try:
                if self._nbytes > self._room:  # room is made for what comes, not for what is announced
                    self._room = min(2 * self._nbytes, max(self._most_nbytes, self._nbytes))
                    grow_upload(self._path.parent, self._room, self._settings)
                self._file.write(data)
                self._file.flush()  # `outline` reads it elsewhere
                self._digest.update(data)
            except (CheckpointError, OSError) as error:
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


def how_far(files: Collection[Arriving]) -> tuple[float, str]:
    """How much of some files has arrived: a share of 0..1, and a text with the time that the rest takes."""
    expected, arrived = sum(file.expected for file in files), sum(file.nbytes for file in files)
    text = f"{bytes_text(arrived)} of {bytes_text(expected)}" + (f" in {len(files)} files" if len(files) > 1 else "")
    if speed := sum(file.nbytes / file.seconds for file in files if file.seconds > STEADY):
        left = max(expected - arrived, 0) / speed
        text += f", {time_left(left)}"
    return min(arrived / max(expected, 1), 1.0), text


def outline(files: Mapping[str, bytes | Received | Arriving], settings: Settings) -> str | None:
    """Make a checkpoint of what has arrived: small files, and the headers of weights before a hole of their size.

    Args:
        files: By the names that the browser tells.

    Returns:
        Its id, as in `arriving:<id>`, to be given to `registry.discard_upload` in the end; None: there is nothing to
        look at yet, or files that tell what they hold at their end, as archives do.

    Raises:
        CheckpointError: If the names are no checkpoint's, or there is no room.
        OSError: If the disk refuses.
    """
    chosen, _ = choose_members(files)
    weights = {name: _header_nbytes(files[member]) for name, member in chosen.items() if weight_format(name)}
    small = {name: files[member] for name, member in chosen.items() if name not in weights}
    tells_at_its_end = any(map(is_archive, files)) or any(weight_format(name) != "safetensors" for name in weights)
    if not weights or None in weights.values() or tells_at_its_end:
        return None
    if any(isinstance(each, Arriving) for each in small.values()):
        return None
    kept = {name: nbytes or 0 for name, nbytes in weights.items()} | {
        name: _nbytes(each) for name, each in small.items()
    }
    upload, folder = reserve_upload(sum(kept.values()), settings)
    try:
        for name, nbytes in kept.items():
            with create_file(folder / name) as target, _opened(files[chosen[name]]) as source:
                for place in range(0, nbytes, PIECE):
                    target.write(source.read(min(PIECE, nbytes - place)))
                target.truncate(_nbytes(files[chosen[name]]))
    except BaseException:
        registry.discard_upload(upload, settings=settings)
        raise
    return upload


def _nbytes(file: bytes | Received | Arriving) -> int:
    if isinstance(file, bytes):
        return len(file)
    return file.expected if isinstance(file, Arriving) else file.nbytes


def _header_nbytes(file: bytes | Received | Arriving) -> int | None:
    """Bytes of a safetensors file's header and of its length before it; None: it is not all here, or none."""
    if not isinstance(file, bytes) and file.path is None:
        return None
    with _opened(file) as opened:
        header = int.from_bytes(opened.read(LENGTH), "little")
        here = opened.seek(0, os.SEEK_END)
    return LENGTH + header if 0 < header <= min(here - LENGTH, MAX_HEADER) else None


def _opened(file: bytes | Received | Arriving) -> BinaryIO:
    if isinstance(file, bytes):
        return BytesIO(file)
    if file.path is None:
        raise FileNotFoundError
    return file.path.open("rb")
