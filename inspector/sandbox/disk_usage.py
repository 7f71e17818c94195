"""What a worker keeps on the disk: the kernel bounds the size of each of its files, and not their number."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

MOST_FILES = 100_000  # and folders; an archive has at most a tenth of it
GONE = (FileNotFoundError, NotADirectoryError, ProcessLookupError)
BLOCK = 512  # bytes that st_blocks counts, on any system


def kept_nbytes(own: Path, pid: int, *, most: int = MOST_FILES) -> float:
    """Bytes on the disk of all files below a worker's folder, and of those that it removed and still has open.

    Args:
        own: The folder.
        pid: The worker; 0: it has not begun.
        most: Files and folders that are counted.

    Returns:
        Infinity if there are too many files, or folders that cannot be looked through: too deep, or closed.
    """
    sizes: dict[tuple[int, int], int] = {}  # by inode: a file may have several names
    try:
        for count, found in enumerate(chain(_removed(own, pid), _below(own))):
            if count == most:
                return math.inf
            sizes[found.st_dev, found.st_ino] = _nbytes(found)
    except OSError:
        return math.inf
    return sum(sizes.values())


def _nbytes(found: os.stat_result) -> int:
    return min(found.st_size, BLOCK * found.st_blocks) if hasattr(found, "st_blocks") else found.st_size


def _below(own: Path) -> Iterator[os.stat_result]:
    """Files and folders; no link is followed.

    Raises:
        OSError: If a folder cannot be listed, and is still there.
    """
    waiting = [str(own)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with suppress(*GONE):
                        yield entry.stat(follow_symlinks=False)
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
        except GONE:
            continue


def _removed(own: Path, pid: int) -> Iterator[os.stat_result]:
    """Open files that were below the folder and have no name any more, as far as the system tells."""
    place = f"{own.resolve()}{os.sep}"
    with suppress(OSError):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found = path.stat()
                if stat.S_ISREG(found.st_mode) and not found.st_nlink and str(path.readlink()).startswith(place):
                    yield found
