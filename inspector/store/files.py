"""Write files so that nothing half-written is ever found."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

ATTEMPTS = 5
LOCK = ".lock"
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
