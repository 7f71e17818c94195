"""Parse JSON of strangers: bounded in size and depth, no key twice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError

MAX_DEPTH = 32
MAX_VALUES = (
    8_000_000  # a tokenizer of 1,000,000 tokens and as many merges has 4 million, a manifest of 100,000 tensors 2
)
# The closing quote is optional and nothing backtracks: linear on any input.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_NOT_SYNTAX = bytes(byte for byte in _NOT_BRACKETS if byte != ord('"'))


def parse_json(data: bytes, name: str) -> Any:
    """Parse JSON text.

    Args:
        data: UTF-8 text, its size already bounded by the caller.

    Raises:
        CheckpointError: If it is no JSON, holds too many values, is nested too deep, or names a key twice.
    """
    refuse_many_values(data, name)
    _refuse_deep(data, name)
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{name} is not valid JSON ({_reason(error)}): get the file again.") from error


def refuse_many_values(data: bytes, name: str) -> None:
    """Refuse JSON text that holds too many values, before any is built.

    Raises:
        CheckpointError: If there are more than `MAX_VALUES`.
    """
    if count_values(data) > MAX_VALUES:
        raise CheckpointError(f"{name} contains more than {MAX_VALUES:,} values: check that it is the right file.")


def count_values(data: bytes) -> int:
    """How many values JSON text holds at most, strings left unread."""
    return sum(map(data.count, (b",", b"[", b"{")))


def read_json(path: Path, name: str, *, limit: int) -> Any:
    """Parse a JSON file of at most `limit` bytes.

    Raises:
        CheckpointError: If it is larger, or as `parse_json` says.
    """
    nbytes = path.stat().st_size
    if nbytes > limit:
        raise CheckpointError(
            f"{name} has {nbytes:,} bytes, more than the limit of {limit:,}: check that it is the right file."
        )
    return parse_json(path.read_bytes(), name)


def _refuse_deep(data: bytes, name: str) -> None:
    """Refuse JSON that is nested too deep for a recursive parser.

    Raises:
        CheckpointError: If arrays and objects are nested more than `MAX_DEPTH` deep.
    """
    if b"\\" not in data:  # then each quote begins or ends a string: most are empty without their letters
        data = data.translate(None, _NOT_SYNTAX).replace(b'""', b"")
    brackets = _STRING.sub(b"", data).translate(None, _NOT_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets:
        raise CheckpointError(
            f"{name} is nested more than {MAX_DEPTH} levels deep or has unmatched brackets: "
            "check that it is the right file."
        )


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of the pairs that the parser found.

    Raises:
        ValueError: If it names a key twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return str(error) if "twice" in str(error) else "a number or the nesting is too large"
