"""Give up what a process of root may do beyond an ordinary user's, but for reading its files."""

from __future__ import annotations

import ctypes
import os

VERSION = 0x20080522  # of linux/capability.h, for 64 capabilities
# Files of other people: a store or a folder that was mounted from elsewhere. Which files at all is
# Landlock's part.
KEPT = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Set(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop_privileges() -> None:
    """Keep the right to open files, and no other privilege; an ordinary user has none to lose.

    Raises:
        OSError: If the kernel does not do it.
    """
    library = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(VERSION, 0), (_Set * 2)()
    _must(library.capget(ctypes.byref(header), sets))
    low = sets[0].permitted & KEPT
    sets[0], sets[1] = _Set(low, low, 0), _Set(0, 0, 0)
    _must(library.capset(ctypes.byref(header), sets))


def _must(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
