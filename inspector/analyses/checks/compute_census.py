"""Read stored numbers once, in the type that they are stored in: NaN, infinity, and nothing but zeros."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from inspector.models.tensors import read_tensors, view_numbers
from inspector.progress import Pace, Progress
from inspector.store.copies import is_packed
from inspector.store.manifests.columns import TensorInfo
from inspector.store.manifests.manifest import Manifest
from inspector.store.readers.safetensors import contiguous_strides
from inspector.store.readers.streams import Part, sampled_parts, stream, whole_parts

# Codes of float8, as signed and as unsigned bytes, from which on they are no numbers: positive ones are the largest
# of signed bytes, negative ones of unsigned bytes, so that two maxima tell.
NO_NUMBERS = {torch.float8_e4m3fn: (0x7F, 0xFF), torch.float8_e5m2: (0x7C, 0xFC)}
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by the bytes of a number
MATRIX, WIDE = 2, 16  # axes of a matrix, and columns from which on equal numbers of a row are no chance
NO_MAXIMA = {torch.bool: torch.uint8, torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


@dataclass(frozen=True, slots=True)
class Found:
    """What some numbers are; `first` is the place of the first one that is not finite."""

    zero: bool  # every one is 0
    nan: int = 0
    infinite: int = 0
    first: int | None = None
    constant_rows: int = 0  # that lie in them whole, and hold one number all over


@dataclass(frozen=True, slots=True)
class Census:
    """What was read of a tensor's numbers."""

    tensor: TensorInfo
    read: int = 0  # numbers
    nan: int = 0
    infinite: int = 0
    first: int | None = None  # place of the first number that is not finite, in the file's order
    zero: bool = True  # every number is 0
    constant_rows: int = 0  # of a matrix, that hold one number all over

    @property
    def numbers(self) -> int:
        """How many the tensor has."""
        return math.prod(self.tensor.shape)


def take_census(manifest: Manifest, progress: Progress, *, sample: bool = False) -> list[Census]:
    """Read every tensor of the files once, or evenly spaced pages of each.

    Args:
        sample: Read about a gigabyte in all; what lies in memory with gaps is left out.

    Returns:
        One entry a tensor that was read, in the manifest's order.

    Raises:
        CheckpointError: If a file cannot be read, or has changed.
    """
    places = {tensor.place: tensor for tensor in manifest.tensors if tensor.nbytes}  # names on the same bytes: once
    packed = [tensor for tensor in places.values() if is_packed(tensor)]
    loose = [] if sample else [tensor for tensor in places.values() if not is_packed(tensor)]
    parts = list(sampled_parts(packed)) if sample else list(whole_parts(packed, in_rows=True))
    what = "Reading a sample of the numbers" if sample else "Reading every number"
    pace = Pace(progress, what, sum(part.nbytes for part in parts) + sum(tensor.nbytes for tensor in loose))
    found: dict[Any, Census] = {}
    for part, each in _looked_at(manifest, parts, loose):
        place = part.tensor.place
        found[place] = _add(found.get(place, Census(part.tensor)), part, each)
        pace.add(part.nbytes)
    return [
        replace(found[tensor.place], tensor=tensor)
        for tensor in manifest.tensors
        if tensor.nbytes and tensor.place in found
    ]


def look_at_part(part: Part, data: np.ndarray) -> Found:
    """Say what the numbers of a part are, and which of its rows hold one number all over."""
    numbers = view_numbers(part, data)
    found = look(numbers)
    return replace(found, constant_rows=_count_constant(part, numbers, zero=found.zero))


def _count_constant(part: Part, numbers: torch.Tensor, *, zero: bool) -> int:
    """Rows of a matrix that lie in a part whole, and whose numbers are equal to the bit, or all 0."""
    shape = part.tensor.shape
    if len(shape) < MATRIX or shape[-1] < WIDE or part.tensor.strides != contiguous_strides(shape):
        return 0
    columns, start = shape[-1], part.place // numbers.dtype.itemsize
    before = -start % columns
    count = (len(numbers) - before) // columns
    if count < 1 or zero or numbers.dtype.itemsize not in BITS:
        return max(0, count) if zero else 0
    rows = numbers[before : before + count * columns].view(BITS[numbers.dtype.itemsize]).view(count, columns)
    first = rows[:, 0]
    alike = (first == rows[:, columns // 2]) & (first == rows[:, -1])  # of nearly all rows these tell enough
    few = rows[alike]
    return int((few == few[:, :1]).all(dim=1).sum()) if len(few) else 0


def look(numbers: torch.Tensor) -> Found:
    """Say what the numbers of one dimension are, in one pass where nothing is wrong with them."""
    if numbers.is_complex():
        return look(torch.view_as_real(numbers).reshape(-1))
    if numbers.dtype in NO_NUMBERS:
        return _look_at_float8(numbers)
    if numbers.is_floating_point() and numbers.dtype.itemsize == 1:
        numbers = numbers.float()  # rare, and small: powers of two that scale codes
    plain = numbers.view(NO_MAXIMA.get(numbers.dtype, numbers.dtype))
    low, high = (float(each) for each in plain.aminmax())
    if not (math.isfinite(low) and math.isfinite(high)):  # NaN in either where one number is NaN
        return _count(numbers)
    return Found(zero=low == high == 0)


def _look_at_float8(numbers: torch.Tensor) -> Found:
    positive, negative = (int(numbers.view(kind).max()) for kind in (torch.int8, torch.uint8))
    least_positive, least_negative = NO_NUMBERS[numbers.dtype]
    if positive >= least_positive or negative >= least_negative:
        return _count(numbers.float())
    return Found(zero=positive <= 0 and negative <= 0x80)  # 0x80 is -0


def _count(numbers: torch.Tensor) -> Found:
    bad = (~torch.isfinite(numbers)).nonzero()[:, 0]
    nan = int(torch.isnan(numbers).sum())
    return Found(zero=False, nan=nan, infinite=len(bad) - nan, first=int(bad[0]))


def _looked_at(manifest: Manifest, parts: Iterable[Part], loose: Iterable[TensorInfo]) -> Iterator[tuple[Part, Found]]:
    yield from stream(manifest, parts, look_at_part)
    for tensor in loose:  # a view with gaps, of old files: as it is mapped
        whole = read_tensors(manifest, [tensor.name])[tensor.name]
        size = tensor.nbytes // len(whole)
        for row, part in enumerate(whole.split(1)):
            yield Part(tensor, row * size, size), look(part.reshape(-1))


def _add(census: Census, part: Part, found: Found) -> Census:
    itemsize = part.tensor.nbytes // census.numbers
    first = census.first
    if first is None and found.first is not None:
        first = part.place // itemsize + found.first
    return replace(
        census,
        read=census.read + part.nbytes // itemsize,
        nan=census.nan + found.nan,
        infinite=census.infinite + found.infinite,
        first=first,
        zero=census.zero and found.zero,
        constant_rows=census.constant_rows + found.constant_rows,
    )
