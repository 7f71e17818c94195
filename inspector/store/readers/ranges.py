"""Read ranges of many files: few handles stay open, and none for what is mapped."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from collections import OrderedDict
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from inspector.errors import CheckpointError

OPEN = 32  # files of a checkpoint that are open at once; the largest have some hundred
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0)  # a private mapping would count as memory otherwise
FAILED = ctypes.c_void_p(-1).value


class Handles:
    """Files that are opened when they are first read; those not read for longest are closed."""

    def __init__(self) -> None:
        self._open: OrderedDict[Path, int] = OrderedDict()

    def __enter__(self) -> Handles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def read(self, path: Path, begin: int, count: int) -> bytes:
        """Read bytes of a file; fewer where it ends."""
        if path not in self._open:
            while len(self._open) >= OPEN:
                os.close(self._open.popitem(last=False)[1])
            self._open[path] = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._open.move_to_end(path)
        return os.pread(self._open[path], count, begin)


def map_range(path: Path, begin: int, end: int) -> np.ndarray:
    """Map bytes of a file into memory, privately: writing to them changes no file.

    Python's own mapping keeps a handle for as long as it lives, and a large checkpoint has more
    shards than a process may have handles. This one keeps none.

    Args:
        begin: First byte.
        end: One past the last.

    Returns:
        The bytes in uint8; unmapped when nothing refers to them any more.

    Raises:
        CheckpointError: If the file ends before.
    """
    start = begin - begin % mmap.ALLOCATIONGRANULARITY
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < end:
            raise CheckpointError(f"{path.name} has changed since it was opened: open it again.")
        if sys.platform == "win32":
            return np.memmap(path, np.uint8, mode="c", offset=begin, shape=(end - begin,))
        mapped = _mapped(file.fileno(), start, end - start)
    return np.ctypeslib.as_array(mapped).view(np.uint8)[begin - start :]


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
