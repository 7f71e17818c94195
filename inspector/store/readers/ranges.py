"""The bytes of a checkpoint's files: whatever reads numbers reads them here."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from inspector.errors import CheckpointError

if TYPE_CHECKING:
    import numpy as np

    from inspector.store.manifests.manifest import FileInfo

OPEN = 32  # files of a checkpoint that are open at once; the largest have some hundred
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0)  # a private mapping would count as memory otherwise
FAILED = ctypes.c_void_p(-1).value
CHANGED = "{name} has changed since it was opened: open it again."

Span = tuple[int, int]  # first byte, and one past the last


class Bytes(Protocol):
    """The bytes of one file, wherever they are.

    Whoever reads some says first which they need. What has not come is an error, and never read as zeros.
    """

    def need(self, spans: Sequence[Span]) -> None:
        """Have these bytes here.

        Raises:
            CheckpointError: If they cannot be had.
        """
        ...

    def into(self, begin: int, place: memoryview) -> None:
        """Read as many bytes as a place takes.

        Raises:
            CheckpointError: If they are not there, or cannot be read.
        """
        ...

    def map(self, begin: int, end: int) -> np.ndarray:
        """Map bytes into memory, privately: writing to them changes no file.

        Returns:
            The bytes in uint8; unmapped when nothing refers to them any more.

        Raises:
            CheckpointError: If they are not there.
        """
        ...

    def check(self) -> None:
        """Refuse a file that is no longer the one that was opened.

        Raises:
            CheckpointError: If it has changed, or cannot be read.
        """
        ...

    def close(self) -> None:
        """Give back what reading keeps open."""
        ...


class PlainBytes:
    """The bytes of a file on this disk, opened when it is first read."""

    def __init__(self, file: FileInfo) -> None:
        self._about = file
        self._file: BinaryIO | None = None

    def need(self, spans: Sequence[Span]) -> None:
        """They are here."""

    def into(self, begin: int, place: memoryview) -> None:
        """Read as many bytes as a place takes."""
        with self._translated():
            file = self._opened()
            file.seek(begin)
            while place:
                count = file.readinto(place)  # type: ignore[attr-defined]
                if not count:
                    raise CheckpointError(CHANGED.format(name=self._about.name))
                place = place[count:]

    def map(self, begin: int, end: int) -> np.ndarray:
        """Map bytes into memory, privately.

        Python's own mapping keeps a handle for as long as it lives, and a large checkpoint has more
        shards than a process may have handles. This one keeps none.
        """
        import numpy as np  # a command that only looks for files waits for no library

        path, start = self._about.path, begin - begin % mmap.ALLOCATIONGRANULARITY
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < end:
                raise CheckpointError(CHANGED.format(name=self._about.name))
            if sys.platform == "win32":
                return np.memmap(path, np.uint8, mode="c", offset=begin, shape=(end - begin,))
            mapped = _mapped(file.fileno(), start, end - start)
        return np.ctypeslib.as_array(mapped).view(np.uint8)[begin - start :]

    def check(self) -> None:
        """Refuse a file of another size, or one in its place."""
        about = self._about
        with self._translated():
            changed = os.fstat(self._opened().fileno()).st_size != about.nbytes
            if changed or (about.stamp and stamp_of(about.path) != about.stamp):
                raise CheckpointError(CHANGED.format(name=about.name))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> BinaryIO:
        if self._file is None:
            self._file = self._about.path.open("rb", buffering=0)  # type: ignore[assignment]  # a raw file reads
        return self._file  # type: ignore[return-value]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CheckpointError(
                f"{self._about.name} cannot be read ({error.strerror or 'no reason given'}): the disk may be failing; "
                "copy the file from its source again."
            ) from error


class OpenFiles:
    """The bytes of many files: those that were not read for longest are closed.

    Args:
        find: The bytes of a file, by its name.
        most: Files that are open at once.
    """

    def __init__(self, find: Callable[[str], Bytes], *, most: int = OPEN) -> None:
        self._find, self._most = find, most
        self._open: OrderedDict[str, Bytes] = OrderedDict()

    def __enter__(self) -> OpenFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getitem__(self, name: str) -> Bytes:
        """The bytes of a file."""
        if name not in self._open:
            while len(self._open) >= self._most:
                self._open.popitem(last=False)[1].close()
            self._open[name] = self._find(name)
        self._open.move_to_end(name)
        return self._open[name]

    def read(self, name: str, begin: int, count: int) -> bytearray:
        """Read bytes of a file."""
        data, file = bytearray(count), self[name]
        file.need([(begin, begin + count)])
        file.into(begin, memoryview(data))
        return data

    def close(self) -> None:
        """Close those that are open."""
        while self._open:
            self._open.popitem()[1].close()


def stamp_of(path: Path) -> tuple[int, int, int]:
    """The time of a file's last change in nanoseconds, its inode and its device."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_ino, stat.st_dev


def _mapped(descriptor: int, start: int, nbytes: int) -> ctypes.Array[ctypes.c_char]:
    library = _library()
    place = library.mmap(
        None, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | NO_RESERVE, descriptor, start
    )
    if place == FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    mapped = (ctypes.c_char * nbytes).from_address(place)
    weakref.finalize(mapped, library.munmap, place, nbytes)
    return mapped


@cache
def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library
