"""Copy what was computed of a checkpoint between the store and the folder of a process that cannot write there."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from pathlib import Path

from inspector.store.files import below, remove_file
from inspector.store.hashing import HASHES, HashCache
from inspector.store.keeping.arrays import MAX_NBYTES
from inspector.store.manifests.documents import DamagedError, copy_file

RESULT = re.compile(rf"[0-9a-f]{{64}}\.arrays|{re.escape(HASHES)}")


def copy_results(folder: Path, target: Path) -> None:
    """Copy the results in a folder that another one lacks, or has in another version; what cannot be copied stays."""
    left = MAX_NBYTES
    for path in below(folder):
        with suppress(OSError, DamagedError):
            if RESULT.fullmatch(path.name) and not _is_same(path, target / path.name):
                target.mkdir(parents=True, exist_ok=True)
                left -= put_copy(path, target / path.name, limit=min(limit_of(path), left))


def limit_of(path: Path) -> int:
    """Bytes of a result of this name; no reader takes more."""
    return HashCache.MAX_NBYTES if path.name == HASHES else MAX_NBYTES


def put_copy(path: Path, target: Path, *, limit: int) -> int:
    """Put a copy of a file in the place of what is there.

    Returns:
        Its size in bytes.

    Raises:
        OSError: If it cannot be copied.
        DamagedError: If it is no plain file, or larger than the limit.
    """
    fresh = target.with_name(f".new-{uuid.uuid4().hex}")
    try:
        copy_file(path, fresh, limit=limit)
        fresh.replace(target)
    finally:
        with suppress(OSError):
            remove_file(fresh)
    return target.lstat().st_size


def _is_same(path: Path, target: Path) -> bool:
    """Whether a copy of a file is there that was made since it was written; files of results are added, or grow."""
    with suppress(OSError):
        found, there = path.lstat(), target.lstat()
        return found.st_size == there.st_size and found.st_mtime_ns <= there.st_mtime_ns
    return False
