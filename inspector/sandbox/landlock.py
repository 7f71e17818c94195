"""Keep the calling process to some folders, by the Linux kernel's Landlock; no privilege is needed.

The numbers are those of `linux/landlock.h`. What is not listed can be neither read nor written,
the memory and environment of other processes not read, and no TCP connection made, from this
thread and all that it starts, for good.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, on every processor
VERSION, PATH_BENEATH = 1, 1
NO_NEW_PRIVILEGES = 38
# A move from folder to folder, which every staged entry makes, is never allowed before this one.
MIN_VERSION = 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
REMOVE_FOLDER, REMOVE_FILE, MAKE_FOLDER, MAKE_FILE = 1 << 4, 1 << 5, 1 << 7, 1 << 8
MAKE_LINK, MOVE, TRUNCATE = 1 << 12, 1 << 13, 1 << 14
MAKE_SPECIAL = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11  # devices, sockets and pipes: never
TRUNCATE_VERSION, NET_VERSION, SCOPE_VERSION = 3, 4, 6
CONNECT_AND_BIND = 3
SIGNALS_AND_ABSTRACT_SOCKETS = 3
READ = READ_FILE | READ_DIR | EXECUTE
WRITE = WRITE_FILE | REMOVE_FOLDER | REMOVE_FILE | MAKE_FOLDER | MAKE_FILE | MOVE
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


def version() -> int:
    """The kernel's version of Landlock; 0 where there is none that is of use."""
    try:
        found = _call(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(VERSION))
    except OSError:
        return 0
    return found if found >= MIN_VERSION else 0


def restrict(
    *,
    read: Iterable[Path],
    lists: Iterable[Path],
    write: Iterable[Path],
    links: Iterable[Path],
    network: bool,
    held: Iterable[int] = (),
) -> None:
    """Keep to some files and folders from now on.

    Args:
        read: What may be read, with all below it.
        lists: Folders whose names may be listed, with those below them.
        write: What may be changed and read, with all below it; no link can be made there.
        links: The same where links can be made, of which a hub's cache consists.
        network: True: TCP stays possible.
        held: Descriptors of files that may be read, and of folders whose names may be listed.

    Raises:
        OSError: If the kernel does not do it.
    """
    known = version()
    cut = TRUNCATE if known >= TRUNCATE_VERSION else 0
    change = READ | WRITE | cut
    ruleset = _Ruleset(
        READ | WRITE | cut | MAKE_LINK | MAKE_SPECIAL,
        CONNECT_AND_BIND if known >= NET_VERSION and not network else 0,
        SIGNALS_AND_ABSTRACT_SOCKETS if known >= SCOPE_VERSION else 0,
    )
    size = 8 if known < NET_VERSION else 16 if known < SCOPE_VERSION else 24
    descriptor = _call(CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for paths, allowed in ((read, READ), (lists, READ_DIR), (write, change), (links, change | MAKE_LINK)):
            for path in paths:
                _allow(descriptor, path, allowed)
        for each in held:
            _allow_opened(descriptor, each, READ_DIR if _is_folder(each) else READ)
        _must(ctypes.CDLL(None, use_errno=True).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _call(RESTRICT_SELF, ctypes.c_int(descriptor), ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def _allow(ruleset: int, path: Path, allowed: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # what is not there needs no permission
        return
    try:
        _allow_opened(ruleset, descriptor, allowed)
    finally:
        os.close(descriptor)


def _allow_opened(ruleset: int, descriptor: int, allowed: int) -> None:
    beneath = _Beneath(allowed if _is_folder(descriptor) else allowed & OF_FILES, descriptor)
    arguments = (ctypes.c_int(PATH_BENEATH), ctypes.byref(beneath), ctypes.c_uint32(0))
    _call(ADD_RULE, ctypes.c_int(ruleset), *arguments)


def _is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def _call(number: int, *arguments: object) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return _must(library.syscall(ctypes.c_long(number), *arguments))


def _must(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
