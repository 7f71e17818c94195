"""Write files so that nothing half-written is ever found, and hash them once."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

ATTEMPTS = 5
LOCK = ".lock"
HASHES = "hashes.json"  # below home: digests of files that are opened where they lie
NEW = ".new-"  # start of a folder's name until it is locked


def write_atomically(path: Path, text: str) -> None:
    """Replace a file's text: readers see the old one or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def fsync_tree(folder: Path) -> None:
    """Force every file and folder below `folder` to the disk."""
    for path in (folder, *folder.rglob("*")):
        fsync_path(path)


def fsync_path(path: Path) -> None:
    """Force a file, or the list of a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def hash_file(path: Path) -> str:
    """The sha256 of a file, as hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class HashCache:
    """Digests of files that have not changed since, so that big weights are hashed once.

    A file is known by its path, size, time of change and inode.
    """

    MAX_ENTRIES = 2_000

    def __init__(self, path: Path) -> None:
        self._path = path

    def digest(self, path: Path) -> str:
        """The sha256 of a file, from the cache where the file is the same."""
        stat = path.stat()
        key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}"
        known = self._read()
        if key in known:
            return known[key]
        digest = hash_file(path)
        entries = {**self._read(), key: digest}
        recent = dict(list(entries.items())[-self.MAX_ENTRIES :])
        write_atomically(self._path, json.dumps(recent))
        return digest

    def forget(self, digests: Collection[str]) -> None:
        """Remove what is known of files by their digest."""
        known = self._read()
        kept = {key: digest for key, digest in known.items() if digest not in digests}
        if len(kept) < len(known):
            write_atomically(self._path, json.dumps(kept))

    def _read(self) -> dict[str, str]:
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(known, dict):
            return {}
        return {k: v for k, v in known.items() if isinstance(v, str) and len(v) == 64}


def put_folder(built: Path, target: Path, *, keep: Callable[[Path], bool]) -> None:
    """Move a finished folder to its place, unless what is there already is to be kept."""
    fsync_tree(built)
    target.parent.mkdir(parents=True, exist_ok=True)
    graves: list[Path] = []  # emptied at the end: meanwhile others miss the folder
    try:
        for _ in range(ATTEMPTS):
            try:
                built.rename(target)
            except OSError as error:
                taken = error.errno in {errno.ENOTEMPTY, errno.EEXIST}  # or gone again by now
                if not taken and not target.is_dir():
                    raise
                if keep(target):
                    return
                graves.append(_bury(target))
            else:
                fsync_path(target.parent)
                return
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    finally:
        for grave in graves:
            shutil.rmtree(grave, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder at once for everybody who lists it, then its files."""
    shutil.rmtree(_bury(folder), ignore_errors=True)


def _bury(folder: Path) -> Path:
    """Take a folder from its place, to where nobody looks; it may be gone already."""
    grave = folder.with_name(f".{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):  # somebody else removed it
        folder.rename(grave)
    return grave


@contextlib.contextmanager
def workspace(home: Path) -> Iterator[Path]:
    """A fresh folder in the store's home that is gone afterwards, or swept if we are killed."""
    folder, descriptor = fresh_folder(home / "temporary", uuid.uuid4().hex)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def fresh_folder(parent: Path, name: str) -> tuple[Path, int | None]:
    """Make a folder that counts as in use until its lock is closed, or this process dies.

    Returns:
        The folder, and the descriptor of its lock.
    """
    hidden = parent / f"{NEW}{name}"  # under this name nobody sweeps it before it is locked
    hidden.mkdir(parents=True)
    descriptor = acquire(hidden)
    return hidden.rename(parent / name), descriptor


def acquire(folder: Path) -> int | None:
    """Lock a folder for this process; None if another one has it."""
    return _open_lock(folder, alone=True)


def share(folder: Path) -> int | None:
    """Lock a folder for this process and others that share it; None if one has it alone."""
    return _open_lock(folder, alone=False)


@contextlib.contextmanager
def turn(home: Path) -> Iterator[None]:
    """Do what one process of a store may do at a time; the others wait."""
    home.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(home / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        _lock(descriptor, alone=True, wait=True)
        yield
    finally:
        os.close(descriptor)


def lock_whole(descriptor: int) -> bool:
    """Lock an open file for this process until it is closed; False if another one has it.

    Where the system has no such locks nobody is kept out.
    """
    return _lock(descriptor, alone=True) or not HAS_LOCKS


def _open_lock(folder: Path, *, alone: bool) -> int | None:
    descriptor = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    if _lock(descriptor, alone=alone):
        return descriptor
    os.close(descriptor)
    return None


try:
    import fcntl

    HAS_LOCKS = True

    def _lock(descriptor: int, *, alone: bool, wait: bool = False) -> bool:
        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        try:
            fcntl.flock(descriptor, kind | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            return False
        return True

except ImportError:  # Windows: nothing is swept while anybody may use it
    HAS_LOCKS = False

    def _lock(descriptor: int, *, alone: bool, wait: bool = False) -> bool:
        return False
