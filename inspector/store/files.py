"""Write files so that nothing half-written is ever found."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

ATTEMPTS = 5
LOCK = ".lock"
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
BY_DESCRIPTOR = os.rename in os.supports_dir_fd and os.listdir in os.supports_fd  # not on Windows
AS_PLACE = getattr(os, "O_PATH", 0)  # opens what may not be read
NEW = ".new-"  # start of a name until what it names is locked, or whole
FRESH = re.compile(r"[0-9a-f]{32}")  # names of folders that this module's callers make
Place = tuple[Path, int, int]  # a path without links, with device and inode: another file there is another one
UNFINISHED = re.compile(rf"\.(?:{NEW[1:]})?{FRESH.pattern}")  # a folder that is being made, or removed


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


def place_of(path: Path) -> Place:
    """What is at a path now, where its links lead."""
    real = path.resolve(strict=True)
    found = real.lstat()
    return real, found.st_dev, found.st_ino


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
    with _opened(target.parent) as above:
        graves: list[Path] = []  # emptied at the end: meanwhile others miss the folder
        try:
            _put(built, target, keep, lambda: graves.append(_bury(target, above)))
        finally:
            for grave in graves:
                _empty(grave, above)


def _put(built: Path, target: Path, keep: Callable[[Path], bool], bury: Callable[[], None]) -> None:
    for _ in range(ATTEMPTS):
        try:
            built.rename(target)
        except OSError as error:
            # Or gone again by now; or a link, which is no folder of ours
            taken = error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}
            if not taken and not target.is_dir():
                raise
            if keep(target):
                return
            bury()
        else:
            fsync_path(target.parent)
            return
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def remove_folder(folder: Path) -> None:
    """Remove a folder at once for everybody who lists it, then its files.

    Nothing outside the folder above it is ever touched: that one is opened and must be no link,
    and what follows is by its descriptor, whatever is put in place of names meanwhile.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), _opened(folder.parent) as above:
        _empty(_bury(folder, above), above)


def below(folder: Path) -> Iterator[Path]:
    """What a folder holds; nothing if it is not there, or a link."""
    names: list[str] = []
    with contextlib.suppress(OSError), _opened(folder) as descriptor:
        names = os.listdir(folder if descriptor is None else descriptor)  # noqa: PTH208 - not by its path
    return (folder / name for name in names)


def remove_file(path: Path) -> None:
    """Remove a file of a folder that is no link."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), _opened(path.parent) as above:
        os.unlink(_name(path, above), dir_fd=above)


def create_file(path: Path) -> BinaryIO:
    """Open a file to write it anew; no link is followed in its place."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_LINK | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """The descriptor of a folder that is no link; None where the system does without."""
    if not BY_DESCRIPTOR:
        if folder.is_symlink():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        yield None
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _bury(folder: Path, above: int | None) -> Path:
    """Rename a folder to a hidden name; it may be gone already."""
    grave = folder.with_name(f".{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):  # somebody else removed it
        os.rename(_name(folder, above), _name(grave, above), src_dir_fd=above, dst_dir_fd=above)
    return grave


def _empty(grave: Path, above: int | None) -> None:
    """Remove what was buried: of a link, the link."""
    try:
        os.unlink(_name(grave, above), dir_fd=above)
    except OSError:  # it is a folder, or gone
        if above is None:
            shutil.rmtree(grave, ignore_errors=True)
        else:
            _remove_tree(grave.name, above)


def _remove_tree(grave: str, above: int) -> None:
    """Remove a folder that whoever wrote it may have made to stay: too deep to descend, or closed.

    Each folder in it is moved up before it is emptied, so that no depth is too much.
    """
    with contextlib.suppress(OSError):
        with _unlocked(grave, above) as top:
            waiting = list(_emptied(top, top))
            while waiting:
                name = waiting.pop()
                with contextlib.suppress(OSError):
                    with _unlocked(name, top) as folder:
                        waiting += _emptied(folder, top)
                    os.rmdir(name, dir_fd=top)
        os.rmdir(grave, dir_fd=above)


def _emptied(folder: int, top: int) -> Iterator[str]:
    """Remove the files of a folder, and move its folders to the top, under the names that are told."""
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except OSError:  # a folder
            moved = name if folder == top else uuid.uuid4().hex
            with contextlib.suppress(OSError):
                if folder != top:
                    with _unlocked(name, folder):
                        os.rename(name, moved, src_dir_fd=folder, dst_dir_fd=top)
                yield moved


@contextlib.contextmanager
def _unlocked(name: str, above: int) -> Iterator[int]:
    """The descriptor of a folder that is no link, whose owner may list and change it from now on."""
    if AS_PLACE:
        place = os.open(name, AS_PLACE | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            if os.fstat(place).st_mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(f"/proc/self/fd/{place}", stat.S_IRWXU)  # noqa: PTH101 - a descriptor
        finally:
            os.close(place)
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _name(path: Path, above: int | None) -> str | Path:
    return path if above is None else path.name


@contextlib.contextmanager
def workspace(home: Path) -> Iterator[Path]:
    """A fresh folder in the store's home that is gone afterwards, or swept if we are killed."""
    folder, descriptor = fresh_folder(home / "temporary", uuid.uuid4().hex)
    try:
        yield folder
    finally:
        remove_folder(folder)
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
    descriptor = os.open(home / LOCK, os.O_CREAT | os.O_RDWR | NO_LINK, 0o600)
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


def lock_shared(descriptor: int) -> bool:
    """Lock an open file together with others; False if one has it alone."""
    return _lock(descriptor, alone=False) or not HAS_LOCKS


def _open_lock(folder: Path, *, alone: bool) -> int | None:
    with _opened(folder) as above:
        descriptor = os.open(_name(folder / LOCK, above), os.O_CREAT | os.O_RDWR | NO_LINK, 0o600, dir_fd=above)
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
