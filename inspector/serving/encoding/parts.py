"""The pieces of a message: a header in JSON, and the bytes that follow it."""

from __future__ import annotations

import json
import struct
from typing import Any

MARK = b"CI01"
START = struct.Struct("<4sQ")
MAX_HEADER = 500_000_000  # bytes of the header
MAX_VALUES = 12_000_000  # of one message, counted before it is parsed
_SEPARATORS = (b",", b"[", b"{")

# What a header calls the values that JSON does not have: {kind: content}.
TUPLE, DICT, SET, FROZEN, BYTES, PATH, COMPLEX = "t", "d", "s", "f", "b", "p", "c"
ARRAY, FRAME, OBJECT = "a", "F", "o"
# What columns of frames are.
TEXTS, OBJECTS, CATEGORIES, MASKED, NUMBERS = "texts", "objects", "categories", "masked", "numbers"

DTYPES = frozenset(
    {
        "bool",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *(f"float{bits}" for bits in (16, 32, 64)),
        *(f"complex{bits}" for bits in (64, 128)),
    }
)
# pandas' own types, which have numbers that are not there -> NumPy's of the others
MASKED_DTYPES = {
    "boolean": "bool",
    **{f"{sign}Int{bits}": f"{sign.lower()}int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
    **{f"Float{bits}": f"float{bits}" for bits in (32, 64)},
}
MAX_AXES = 32


class DecodeError(ValueError):
    """Bytes are not what `encode` writes of the class that was expected."""


class PayloadReader:
    """The bytes that follow the header; each is taken once, in order."""

    def __init__(self, data: memoryview) -> None:
        self._data = data

    def take(self, nbytes: Any) -> memoryview:
        """The next bytes.

        Raises:
            DecodeError: If there are not that many.
        """
        if type(nbytes) is not int or not 0 <= nbytes <= len(self._data):
            raise DecodeError("The message is shorter than its header says.")
        taken, self._data = self._data[:nbytes], self._data[nbytes:]
        return taken

    def close(self) -> None:
        """All must have been taken.

        Raises:
            DecodeError: If bytes are left.
        """
        if len(self._data):
            raise DecodeError("The message is longer than its header says.")


def join(header: Any, parts: list[bytes]) -> bytes:
    """Write a header and what follows it."""
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    return b"".join((START.pack(MARK, len(text)), text, *parts))


def split(data: bytes) -> tuple[Any, PayloadReader]:
    """Read what `join` wrote.

    Raises:
        DecodeError: If it is something else, or too much of it.
    """
    if len(data) < START.size:
        raise DecodeError("The message is cut off.")
    mark, nbytes = START.unpack_from(data)
    end = START.size + nbytes
    if mark != MARK or nbytes > MAX_HEADER or end > len(data):
        raise DecodeError("The message is none of ours, or cut off.")
    text = data[START.size : end]
    if sum(map(text.count, _SEPARATORS)) > MAX_VALUES:
        raise DecodeError("The message has too many values.")
    try:
        return json.loads(text), PayloadReader(memoryview(data)[end:])
    except (ValueError, RecursionError) as error:
        raise DecodeError("The message's header is no JSON.") from error
