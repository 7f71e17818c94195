"""Read JSON that another process wrote into the store, and believe nothing of it unchecked.

Whoever writes there has read strangers' files: a worker that was taken over writes what it likes.
So a document is bounded before it is parsed, and each value must be what its place asks for.
"""

from __future__ import annotations

import gc
import json
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from inspector.store.readers.jsons import MAX_VALUES, count_values, unique

MAX_NBYTES = 64_000_000  # the manifest of 100,000 tensors has 20 million
PIECE = 1 << 20
FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

T = TypeVar("T")


class DamagedError(ValueError):
    """A document is not what its reader expects."""


def read_bytes(path: Path, *, limit: int) -> bytes:
    """Read a plain file of at most `limit` bytes; no link is followed.

    Raises:
        OSError: If it is not there or a link.
        DamagedError: If it is longer, or no plain file.
    """
    descriptor = os.open(path, os.O_RDONLY | _NO_LINK)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            raise DamagedError(path.name)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise DamagedError(path.name)
    return data


def copy_file(path: Path, target: Path, *, limit: int) -> None:
    """Copy a plain file of at most `limit` bytes, as many as it has now; no link is followed.

    Raises:
        OSError: If it is not there or a link, or the copy is there.
        DamagedError: If it is longer, or no plain file.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            raise DamagedError(path.name)
        left = found.st_size
        with target.open("xb") as copy:
            while piece := file.read(min(left, PIECE)):
                left -= copy.write(piece)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause garbage collection while values are read of which none is garbage.

    It would look at each of a hundred thousand tensors again and again: half of the time.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@collector_paused()
def read_document(path: Path, *, limit: int = MAX_NBYTES) -> Mapping[str, Any]:
    """Parse a JSON object.

    Raises:
        OSError: If it is not there or a link.
        DamagedError: If it is no object, too long, or names a key twice.
    """
    return parse_object(read_bytes(path, limit=limit), path.name)


def parse_object(data: bytes, name: str) -> dict[str, Any]:
    """Parse the text of a JSON object, its length already bounded.

    Raises:
        DamagedError: If it is no object, has too many values, or names a key twice.
    """
    if count_values(data) > MAX_VALUES:
        raise DamagedError(name)
    try:
        return as_object(json.loads(data, object_pairs_hook=unique))
    except (ValueError, RecursionError) as error:
        raise DamagedError(name) from error


def fields_of(value: Any, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """An object that has these keys and no other."""
    found = as_object(value)
    if not set(required) <= found.keys() <= {*required, *optional}:
        raise DamagedError("fields")
    return found


def as_object(value: Any) -> dict[str, Any]:
    """A JSON object."""
    return _of(dict, value)


def as_text(value: Any) -> str:
    """Text that can be encoded."""
    _of(str, value).encode()  # a lone surrogate is no text
    return value


def as_size(value: Any) -> int:
    """A whole number from 0 on."""
    if not 0 <= _of(int, value) < 2**63:
        raise DamagedError("size")
    return value


def as_flag(value: Any) -> bool:
    """True or false."""
    return _of(bool, value)


def as_digest(value: Any) -> str:
    """A SHA-256 as 64 hex digits, which may become a name in the store."""
    if not is_fingerprint(_of(str, value)):
        raise DamagedError("digest")
    return value


def as_one_of(value: Any, allowed: Collection[str]) -> str:
    """One of some words."""
    if _of(str, value) not in allowed:
        raise DamagedError("word")
    return value


def as_list(value: Any, item: Callable[[Any], T], *, most: int) -> tuple[T, ...]:
    """A list, each of whose items must fit."""
    if len(_of(list, value)) > most:
        raise DamagedError("list")
    return tuple(map(item, value))


def optional(value: Any, check: Callable[[Any], T]) -> T | None:
    """None, or what fits."""
    return None if value is None else check(value)


def is_fingerprint(text: str) -> bool:
    """Whether a text is a whole fingerprint or digest: it becomes a name in the store."""
    return FINGERPRINT.fullmatch(text) is not None


def is_plain_file(path: Path) -> bool:
    """Whether a file is there, and no link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def is_plain_folder(path: Path) -> bool:
    """Whether a folder is there, and no link."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _of(kind: type[T], value: Any) -> T:
    if type(value) is not kind:  # True is an int, but no size
        raise DamagedError(kind.__name__)
    return value
