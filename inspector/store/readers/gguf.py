"""Read the header of a GGUF file, llama.cpp's format, and believe nothing that the file cannot hold.

The layout is that of ggml's `docs/gguf.md`, versions 2 and 3: magic, version, counts, metadata, tensors, and after an
aligned offset their numbers. Arrays of metadata are skipped, and read when somebody asks for one (`read_array`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

from inspector.errors import CheckpointError
from inspector.store.manifests.columns import TensorInfo, Tensors
from inspector.store.names import is_text
from inspector.store.readers.ggml import BLOCKS, PLAIN
from inspector.store.readers.safetensors import (
    MAX_NAME,
    Header,
    contiguous_strides,
    refuse_foreign,
    refuse_huge,
    refuse_many,
)
from inspector.text import quoted

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_KEYS = 10_000
MAX_TEXT_NBYTES = 1 << 20  # of one string: chat templates have some ten thousand
MAX_STRINGS = 1_000_000  # of all arrays: the largest vocabularies and their merges are 780,000
MAX_HEADER_NBYTES = 1 << 30
MAX_AXES = 4  # ggml's
MOST_KEPT = 1_024  # numbers of an array that are kept with the rest: one for each layer
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 1 << 16
WINDOW = 1 << 20

ALIGNMENT, ARCHITECTURE = "general.alignment", "general.architecture"
TEXT, ARRAY = 8, 9  # kinds of metadata, beside the numbers
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_UNKNOWN = "has values of the kind {kind:,}, which the format does not have: get the file again."


@dataclass(frozen=True, slots=True)
class Array:
    """Where an array of the metadata lies in its file."""

    kind: int
    count: int
    begin: int


def read_gguf(path: Path, name: str) -> Header:
    """Read the header of a GGUF file.

    Args:
        name: What the checkpoint calls it; goes into every TensorInfo.

    Returns:
        Tensors of blocks are listed as the bytes of their rows, (…, bytes of a row) in uint8; settings are the
        metadata: numbers, texts, tuples of few numbers, and Array.

    Raises:
        CheckpointError: If the header is not one, or lies about what the file holds.
    """
    refuse_foreign(path, name)
    with path.open("rb") as file:
        cursor = _Cursor(file, name, path.stat().st_size)
        count, keys = _begin(cursor)
        metadata = dict(_read_metadata(cursor, keys))
        if len(metadata) < keys:
            raise CheckpointError(f"The metadata of {name} gives a key twice: get the file again.")
        listed = [_read_tensor(cursor) for _ in range(count)]
    alignment = metadata.get(ALIGNMENT, DEFAULT_ALIGNMENT)
    if type(alignment) is not int or not 8 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise CheckpointError(f"{name} gives {quoted(str(alignment))} as its alignment: get the file again.")
    start = -(-cursor.place // alignment) * alignment
    tensors = sorted((_tensor(each, name, start) for each in listed), key=attrgetter("begin", "nbytes"))
    if len({tensor.name for tensor in tensors}) < count:
        raise CheckpointError(f"{name} lists a tensor twice: get the file again.")
    blocks = {each.name: BLOCKS[each.kind][0] for each in listed if each.kind in BLOCKS}
    warnings = _refuse_gaps(tensors, name, start, cursor.nbytes, alignment)
    return Header(Tensors.of(tensors), {}, warnings, blocks, settings=metadata)


def read_array(path: Path, name: str, array: Array) -> list[Any]:
    """Read an array of the metadata: texts, or numbers.

    Raises:
        CheckpointError: If a text is not one.
    """
    with path.open("rb") as file:
        cursor = _Cursor(file, name, path.stat().st_size, array.begin)
        if array.kind == TEXT:
            return list(cursor.texts(array.count))
        return list(cursor.numbers(array.kind, array.count))


@dataclass(frozen=True, slots=True)
class _Listed:
    """A tensor as the header lists it, unchecked."""

    name: str
    sizes: tuple[int, ...]  # the one that runs fastest first
    kind: int
    offset: int


class _Cursor:
    """Reads on and on in the header of a file, a window at a time."""

    def __init__(self, file: BinaryIO, name: str, nbytes: int, place: int = 0) -> None:
        self._file, self.name, self.nbytes, self.place = file, name, nbytes, place
        self._window, self._begin = b"", 0
        self._strings = 0

    def take(self, count: int) -> bytes:
        """The next bytes."""
        inside = self.place - self._begin
        if not 0 <= inside <= len(self._window) - count:
            self._refuse_past(self.place + count)
            self._load(max(count, WINDOW))
            inside = 0
        self.place += count
        return self._window[inside : inside + count]

    def unpack(self, code: str) -> tuple[Any, ...]:
        """The next numbers."""
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))

    def text(self, most: int = MAX_TEXT_NBYTES) -> str:
        """The next string."""
        (length,) = self.unpack("Q")
        self._refuse_long(length, most)
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise CheckpointError(
                f"The header of {self.name} has a text that is not UTF-8: get the file again."
            ) from error

    def texts(self, count: int) -> Iterator[str]:
        """The next strings; what is not UTF-8 is replaced, as vocabularies may have bytes."""
        for _ in range(count):
            (length,) = self.unpack("Q")
            self._refuse_long(length, MAX_TEXT_NBYTES)
            yield self.take(length).decode(errors="replace")

    def numbers(self, kind: int, count: int) -> tuple[Any, ...]:
        """The next numbers of one kind."""
        return self.unpack(f"{count}{NUMBERS[kind]}")

    def skip(self, count: int) -> None:
        """Leave bytes out."""
        self._refuse_past(self.place + count)
        self.place += count

    def skip_texts(self, count: int) -> None:
        """Leave strings out, of which only the lengths are looked at."""
        self._strings += count
        if self._strings > MAX_STRINGS or 8 * count > self.nbytes - self.place:
            raise CheckpointError(
                f"The metadata of {self.name} lists {self._strings:,} texts, more than "
                f"{'the file can hold' if self._strings <= MAX_STRINGS else f'the limit of {MAX_STRINGS:,}'}: check "
                "that it is a model's checkpoint."
            )
        length_of = struct.Struct("<Q").unpack_from
        while count:
            self._refuse_past(self.place + 8)
            if not 0 <= self.place - self._begin <= len(self._window) - 8:
                self._load(WINDOW)
            window, place, last = self._window, self.place - self._begin, len(self._window) - 8
            while count and place <= last:
                (length,) = length_of(window, place)
                if length > MAX_TEXT_NBYTES:
                    self._refuse_long(length, MAX_TEXT_NBYTES)
                place += 8 + length
                count -= 1
            self.place = self._begin + place
        self._refuse_past(self.place)

    def _load(self, count: int) -> None:
        self._file.seek(self.place)
        self._window, self._begin = self._file.read(min(count, self.nbytes - self.place)), self.place

    def _refuse_past(self, end: int) -> None:
        if end > MAX_HEADER_NBYTES:
            raise CheckpointError(
                f"The header of {self.name} has more than the limit of {MAX_HEADER_NBYTES:,} bytes: check that it is a "
                "model's checkpoint."
            )
        if end > self.nbytes:
            raise CheckpointError(
                f"{self.name} is truncated or not a GGUF file: its header should reach to byte {end:,}, but the file "
                f"has {self.nbytes:,}. Get the file again."
            )

    def _refuse_long(self, length: int, most: int) -> None:
        if length > most:
            raise CheckpointError(
                f"The header of {self.name} has a text of {length:,} bytes, more than the limit of {most:,}: check "
                "that it is a model's checkpoint."
            )


def _begin(cursor: _Cursor) -> tuple[int, int]:
    """Read how many tensors and keys there are."""
    name = cursor.name
    if cursor.nbytes < len(MAGIC) or cursor.take(len(MAGIC)) != MAGIC:
        raise CheckpointError(f"{name} is not a GGUF file: it does not begin with GGUF. Get the file again.")
    (version,) = cursor.unpack("I")
    if version not in VERSIONS:
        if int.from_bytes(version.to_bytes(4, "little"), "big") in (1, *VERSIONS):
            what = "a big-endian GGUF file, which is not supported: convert it to little-endian"
        elif version == 1:
            what = "a GGUF file of version 1, which nobody writes any more: convert the original model again"
        else:
            what = f"a GGUF file of version {version:,}, which is not supported: convert it to version 3"
        raise CheckpointError(f"{name} is {what}.")
    count, keys = cursor.unpack("QQ")
    refuse_many(count, name)
    if keys > MAX_KEYS:
        raise CheckpointError(
            f"The metadata of {name} has {keys:,} keys, more than the limit of {MAX_KEYS:,}: check that it is a "
            "model's checkpoint."
        )
    if not count:
        raise CheckpointError(f"{name} contains no tensors: a file of a vocabulary alone has no weights to look at.")
    return count, keys


def _read_metadata(cursor: _Cursor, keys: int) -> Iterator[tuple[str, Any]]:
    for _ in range(keys):
        key = cursor.text(MAX_NAME)
        (kind,) = cursor.unpack("I")
        if kind == TEXT:
            yield key, cursor.text()
        elif kind in NUMBERS:
            yield key, cursor.numbers(kind, 1)[0]
        elif kind == ARRAY:
            yield key, _read_array(cursor, key)
        else:
            raise CheckpointError(f"{quoted(key)} in the metadata of {cursor.name} {_UNKNOWN.format(kind=kind)}")


def _read_array(cursor: _Cursor, key: str) -> Array | tuple[Any, ...]:
    kind, count = cursor.unpack("IQ")
    array = Array(kind, count, cursor.place)
    if kind == ARRAY:
        raise CheckpointError(
            f"{quoted(key)} in the metadata of {cursor.name} is an array of arrays, which no tool reads: get the file "
            "again."
        )
    if kind == TEXT:
        cursor.skip_texts(count)
    elif kind not in NUMBERS:
        raise CheckpointError(f"{quoted(key)} in the metadata of {cursor.name} {_UNKNOWN.format(kind=kind)}")
    elif count <= MOST_KEPT:
        return cursor.numbers(kind, count)
    else:
        cursor.skip(count * struct.calcsize(f"<{NUMBERS[kind]}"))
    return array


def _read_tensor(cursor: _Cursor) -> _Listed:
    name = cursor.text(MAX_NAME)
    (axes,) = cursor.unpack("I")
    if axes > MAX_AXES:
        raise CheckpointError(
            f"The tensor {quoted(name)} in {cursor.name} has {axes:,} axes, more than the format's {MAX_AXES}: get the "
            "file again."
        )
    sizes = cursor.unpack(f"{axes}Q")
    return _Listed(name, sizes, *cursor.unpack("IQ"))


def _tensor(listed: _Listed, file: str, start: int) -> TensorInfo:
    name, shape = listed.name, tuple(reversed(listed.sizes))
    if not is_text(name) or not name:
        raise CheckpointError(f"{file} has a tensor without a name: get the file again.")
    block = BLOCKS.get(listed.kind)
    if block is None and listed.kind not in PLAIN:
        raise CheckpointError(
            f"The tensor {quoted(name)} in {file} is stored in ggml's type {listed.kind:,}, which this tool does not "
            "know: use a file in a type that it lists."
        )
    refuse_huge(name, file, shape, 8)
    dtype, itemsize = ("uint8", 1) if block else PLAIN[listed.kind]
    if block:
        _, numbers, nbytes = block
        columns = shape[-1] if shape else 0
        if not columns or columns % numbers:
            raise CheckpointError(
                f"The tensor {quoted(name)} in {file} has rows of {columns:,} numbers, which the blocks of {numbers} "
                f"of {block[0]} do not divide: get the file again."
            )
        shape = (*shape[:-1], columns // numbers * nbytes)
    nbytes = math.prod(shape) * itemsize
    if listed.offset >= 2**62:
        raise CheckpointError(f"The tensor {quoted(name)} in {file} lies past any end: get the file again.")
    return TensorInfo(
        name, dtype, shape, contiguous_strides(shape), file, start + listed.offset, nbytes, f"{file}:{name}", nbytes
    )


def _refuse_gaps(tensors: list[TensorInfo], name: str, start: int, nbytes: int, alignment: int) -> tuple[str, ...]:
    """Refuse tensors that overlap, leave gaps or are not aligned, as llama.cpp does; say what comes after them."""
    end = last = start
    for tensor in tensors:
        if tensor.begin != end:
            relation = "overlaps another" if tensor.begin < end else "leaves a gap before it"
            raise CheckpointError(f"The tensor {quoted(tensor.name)} in {name} {relation}: get the file again.")
        last = end + tensor.nbytes
        end = -(-last // alignment) * alignment
    if last > nbytes:
        raise CheckpointError(
            f"{name} is truncated: its header lists {last - start:,} bytes of weights, but only "
            f"{max(0, nbytes - start):,} are there. Get the file again."
        )
    rest = nbytes - end
    return (f"{name} has {rest:,} bytes after its last tensor that no header describes.",) if rest > 0 else ()
