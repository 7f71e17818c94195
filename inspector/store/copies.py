"""Find tensors of a checkpoint that are stored more than once, without loading them."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager

import numpy as np

from inspector.store.manifests.columns import TensorInfo
from inspector.store.manifests.manifest import Manifest
from inspector.store.readers.ranges import OpenFiles

CHUNK = 1 << 22  # bytes read at once: what a comparison costs in memory, twice
PLACES = 64  # of two tensors that are looked at before all of them are
SAMPLE = 64  # bytes of each sample that a full comparison is decided by

ReadBytes = Callable[[TensorInfo, int, int], bytearray]  # tensor, first byte within it, how many


def equal_copies(
    manifest: Manifest, *, names: Container[str] | None = None, chunk: int = CHUNK
) -> list[tuple[str, ...]]:
    """Group the tensors whose bytes are equal though the file keeps each of them.

    Tensors that hold one number all over (fresh biases and norms) are left out: they say nothing.
    Only tensors whose samples agree are read in full.

    Args:
        names: The tensors to search; None: all.

    Returns:
        Groups of at least two names in file order; tensors on one storage count as one copy.
    """
    alike: dict[tuple[object, ...], list[TensorInfo]] = {}
    with _reading(manifest) as read:
        for tensor in manifest.tensors:
            if names is not None and tensor.name not in names:
                continue
            if math.prod(tensor.shape) > 1 and is_packed(tensor):
                middle = max(0, tensor.nbytes // 2 - SAMPLE)
                last = max(0, tensor.nbytes - SAMPLE)
                samples = tuple(bytes(read(tensor, place, SAMPLE)) for place in (0, middle, last))
                key = (tensor.dtype, tensor.shape, tensor.strides, samples)
                alike.setdefault(key, []).append(tensor)
        groups = [
            group
            for tensors in alike.values()
            if len(tensors) > 1 and not _constant(tensors[0], read, chunk)
            for group in _equal_groups(tensors, read, chunk)
        ]
    return [tuple(tensor.name for tensor in group) for group in groups]


def same_bytes(manifest: Manifest, first: str, second: str, *, chunk: int = CHUNK) -> bool:
    """Whether two stored tensors hold the same bytes, element for element; `chunk` of them are read at once."""
    return same_tensors(manifest, manifest.by_name[first], manifest.by_name[second], chunk=chunk)


def same_tensors(manifest: Manifest, one: TensorInfo, other: TensorInfo, *, chunk: int = CHUNK) -> bool:
    """The same of any two tensors in a checkpoint's files."""
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    if _place(one) == _place(other) and one.strides == other.strides:
        return True
    with _reading(manifest) as read:
        if one.strides == other.strides and is_packed(one):
            return _same(one, other, read, chunk)
        return bool(np.array_equal(_elements(one, read), _elements(other, read)))


def read_pieces(
    manifest: Manifest, tensor: TensorInfo, *, count: int | None = None, every: int = 1
) -> Iterator[bytearray]:
    """Read a packed tensor's bytes in the order of the file.

    Args:
        count: Elements at a time; None: a few million bytes.
        every: Only the first piece of so many.
    """
    piece = CHUNK if count is None else count * _itemsize(tensor)
    with _reading(manifest) as read:
        for place in range(0, tensor.nbytes, piece * every):
            yield read(tensor, place, piece)


def is_packed(tensor: TensorInfo) -> bool:
    """Whether the elements fill their bytes in the file without gaps."""
    step = 1
    for stride, size in sorted(zip(tensor.strides, tensor.shape, strict=True)):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def _itemsize(tensor: TensorInfo) -> int:
    return tensor.nbytes // max(1, math.prod(tensor.shape))


def _place(tensor: TensorInfo) -> tuple[str, int]:
    return tensor.file, tensor.begin


@contextmanager
def _reading(manifest: Manifest) -> Iterator[ReadBytes]:
    with OpenFiles(manifest.bytes_of) as files:
        yield lambda tensor, place, count: files.read(
            tensor.file, tensor.begin + place, min(count, tensor.nbytes - place)
        )


def _equal_groups(tensors: list[TensorInfo], read: ReadBytes, chunk: int) -> list[list[TensorInfo]]:
    """Split tensors with equal samples by all their bytes; only groups of two places or more."""
    groups: list[list[TensorInfo]] = []
    for tensor in tensors:
        for group in groups:
            if _place(group[0]) == _place(tensor) or _same(group[0], tensor, read, chunk):
                group.append(tensor)
                break
        else:
            groups.append([tensor])
    return [group for group in groups if len({_place(tensor) for tensor in group}) > 1]


def _same(first: TensorInfo, second: TensorInfo, read: ReadBytes, chunk: int) -> bool:
    """Whether all bytes are equal; a few places all over are looked at first, where copies that drifted differ."""
    few = range(0, first.nbytes, max(SAMPLE, first.nbytes // PLACES))
    if any(read(first, place, SAMPLE) != read(second, place, SAMPLE) for place in few):
        return False
    return all(read(first, place, chunk) == read(second, place, chunk) for place in range(0, first.nbytes, chunk))


def _constant(tensor: TensorInfo, read: ReadBytes, chunk: int) -> bool:
    """Whether every element has the same bytes."""
    item = _itemsize(tensor)
    element = read(tensor, 0, item)
    piece_nbytes = chunk - chunk % item
    return all(
        (piece := read(tensor, place, piece_nbytes)) == element * (len(piece) // item)
        for place in range(0, tensor.nbytes, piece_nbytes)
    )


def _elements(tensor: TensorInfo, read: ReadBytes) -> np.ndarray:
    """The elements as opaque items in the order of the shape, whatever their strides."""
    item = _itemsize(tensor)
    steps = zip(tensor.shape, tensor.strides, strict=True)
    extent = (1 + sum((size - 1) * stride for size, stride in steps)) * item
    # More than nbytes where there are gaps: read it as if it were a longer tensor.
    whole = TensorInfo(
        tensor.name,
        tensor.dtype,
        tensor.shape,
        tensor.strides,
        tensor.file,
        tensor.begin,
        extent,
        tensor.storage,
        tensor.storage_nbytes,
    )
    return np.lib.stride_tricks.as_strided(
        np.frombuffer(read(whole, 0, extent), dtype=f"V{item}"),
        shape=tensor.shape,
        strides=tuple(stride * item for stride in tensor.strides),
    )
