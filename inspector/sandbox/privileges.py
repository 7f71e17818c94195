"""Give up what a process of root may do: become another user, who may read files and no more."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

VERSION = 0x20080522  # of linux/capability.h, for 64 capabilities
READ_FILES, WRITE_FILES = 1 << 2, 1 << 1  # CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE
KEEP_CAPABILITIES = 8  # PR_SET_KEEPCAPS


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Set(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def worker_user(name: str) -> tuple[int, int] | None:
    """The user and group that a worker of root's becomes; None: workers stay who started them."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    import pwd

    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    return (found.pw_uid, found.pw_gid) if found.pw_uid else None


def give_to(path: Path, user: tuple[int, int] | None) -> None:
    """Make a worker's user the owner of a folder."""
    if user is not None:
        with suppress(OSError):  # a root that may not: then its workers stay root as well
            os.chown(path, *user)


def drop_privileges(user: tuple[int, int] | None, *, groups: Iterable[int] = (), writes: bool = False) -> None:
    """Keep the right to read files, and no other privilege; an ordinary user has none to lose.

    The files are other people's: a store or a folder that was mounted from elsewhere, root's own
    libraries. Which files at all is Landlock's part.

    Args:
        user: From `worker_user`, to become it.
        groups: Further groups to keep, of devices.
        writes: True for the worker that downloads: a cache belongs to whoever made it.

    Raises:
        OSError: If the kernel does not do it.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if user is not None:
        _must(library.prctl(KEEP_CAPABILITIES, 1, 0, 0, 0))
        os.setgroups(list(groups))
        os.setresgid(user[1], user[1], user[1])
        os.setresuid(user[0], user[0], user[0])
    kept = READ_FILES | WRITE_FILES if writes or user is None else READ_FILES
    header, sets = _Header(VERSION, 0), (_Set * 2)()
    _must(library.capget(ctypes.byref(header), sets))
    low = sets[0].permitted & kept
    sets[0], sets[1] = _Set(low, low, 0), _Set(0, 0, 0)
    _must(library.capset(ctypes.byref(header), sets))


def _must(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
