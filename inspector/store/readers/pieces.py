"""Read archives of strangers in small pieces: their libraries trust every length in them."""

from __future__ import annotations

import re
import tarfile
import zipfile
from typing import IO, Any, Protocol

MAX_HEADER_NBYTES = 1_000_000  # of what says more about a member of a tar than its block does
MAX_RECORDS = 100  # of one such header; tar itself writes ten at most
MAX_DIGITS = 100
RECORD = re.compile(rb"(\d{1,9}) ([^=\n]{1,500})=")


class ByteLimit(Protocol):
    """Refuses too many bytes."""

    def check(self, nbytes: int, /) -> None:
        """Raise if so many bytes are more than are taken."""


class ZipPieces:
    """A zip whose library is given no more than some bytes at once, its directory included."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._most = file, most

    def read(self, size: int = -1) -> bytes:
        """Read as a file does.

        Raises:
            BadZipFile: If that is too much at once.
        """
        if size < 0:
            here = self._file.tell()
            size = self._file.seek(0, 2) - here
            self._file.seek(here)
        if size > self._most:
            raise zipfile.BadZipFile("its directory is too long")
        return self._file.read(size)

    def seek(self, position: int, whence: int = 0) -> int:
        """Step as a file does.

        Raises:
            BadZipFile: If that is before the file's start.
        """
        if whence == 0 and position < 0:
            raise zipfile.BadZipFile("a place before its start")
        return self._file.seek(position, whence)

    def tell(self) -> int:
        """Where the file stands."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Whether it can step; its library asks."""
        return True


class TarPieces:
    """A tar, read up to its limit and in small pieces."""

    def __init__(self, file: Any, limit: ByteLimit, most: int) -> None:
        self._file, self._limit, self._most = file, limit, most
        self.records_next = False  # what is read next says more about a member

    def read(self, size: int) -> bytes:
        """Read as a file does.

        Raises:
            ReadError: If that is too much at once, or records that are none.
        """
        if size > self._most:
            raise tarfile.ReadError("a name or a header is too long")
        data = self._file.read(size)
        self._limit.check(self._file.tell())
        if self.records_next:
            self.records_next = False
            _refuse_wrong_records(data)
        return data

    def seek(self, position: int) -> int:
        """Step as a file does: a step forward unpacks what is skipped."""
        self._limit.check(position)
        return self._file.seek(position)

    def tell(self) -> int:
        """Where the file stands."""
        return self._file.tell()


class TarMember(tarfile.TarInfo):
    """A member whose records are looked through before the library reads them.

    It trusts each record's length, so that records may lie on each other: of 60 kilobytes it makes
    six gigabytes. Its searches for digits take the square of what they find. And what is said once
    for all members it copies for each.
    """

    def _proc_pax(self, archive: Any) -> Any:
        if self.size > MAX_HEADER_NBYTES or len(archive.pax_headers) > MAX_RECORDS:
            raise tarfile.ReadError("a header is too long")
        archive.fileobj.records_next = True
        return super()._proc_pax(archive)  # type: ignore[misc]


def _refuse_wrong_records(data: bytes) -> None:
    text = data.rstrip(b"\0")
    place = 0
    for _ in range(MAX_RECORDS):
        match = RECORD.match(text, place)
        if match is None or match[2].startswith(b"GNU.sparse"):
            break
        end = place + int(match[1])
        if not match.end() < end <= len(text) or text[end - 1 : end] != b"\n":
            break
        place = end
    if place != len(text) or any(len(run) > MAX_DIGITS for run in re.findall(rb"\d+", text)):
        raise tarfile.ReadError("records that are none, or of a file with holes")
