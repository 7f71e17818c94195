"""Read a vocabulary of tiktoken (https://github.com/openai/tiktoken): a token in base64 and its rank on each line."""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.store.readers.sentencepiece import MAX_PIECE_NBYTES, MAX_PIECES, MAX_PIECES_NBYTES, refuse_large

_LINE = re.compile(rb"([A-Za-z0-9+/]+={0,2}) (\d{1,7})")
_WINDOW = 4 * MAX_PIECE_NBYTES


def is_tiktoken(path: Path) -> bool:
    """Whether a file begins as a vocabulary of tiktoken does, by its first line."""
    with path.open("rb") as file:
        return _LINE.fullmatch(file.read(_WINDOW).split(b"\n", 1)[0].rstrip(b"\r")) is not None


def read_tiktoken(path: Path, name: str) -> dict[bytes, int]:
    """Read the rank of every token, which is its id.

    Raises:
        CheckpointError: If the file is damaged or too large, or lacks a byte or a rank.
    """
    refuse_large(path, name)
    ranks: dict[bytes, int] = {}
    left = MAX_PIECES_NBYTES
    lines = path.read_bytes().splitlines()
    for place, line in enumerate(lines, 1):
        if not line:
            continue
        token, rank = _entry(line, f"Line {place:,} of {name}")
        left -= len(token)
        if left < 0 or len(ranks) >= MAX_PIECES:
            raise CheckpointError(
                f"{name} has more tokens than any vocabulary (at most {MAX_PIECES:,}, {MAX_PIECES_NBYTES:,} bytes in "
                "all): check that it belongs to a tokenizer."
            )
        ranks[token] = rank
    if len(ranks) != len(set(ranks.values())) or not all(bytes([byte]) in ranks for byte in range(256)):
        raise CheckpointError(f"{name} lacks a byte, or gives two tokens one rank: get the file again.")
    return ranks


def _entry(line: bytes, where: str) -> tuple[bytes, int]:
    found = _LINE.fullmatch(line)
    if not found or len(found[1]) > 2 * MAX_PIECE_NBYTES:
        raise CheckpointError(f"{where} is not a token in base64 and its rank: get the file again.")
    try:
        return base64.b64decode(found[1], validate=True), int(found[2])
    except binascii.Error as error:
        raise CheckpointError(f"{where} is not a token in base64 and its rank: get the file again.") from error
