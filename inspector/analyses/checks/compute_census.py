"""Read stored numbers once, in their stored type: NaN, infinity, nothing but zeros, the sum of their squares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from inspector.models.placing.threads import single_threaded
from inspector.models.tensors import StoredReader, view_numbers
from inspector.progress import Pace, Progress
from inspector.store.copies import is_packed
from inspector.store.manifests.columns import TensorInfo
from inspector.store.manifests.manifest import Manifest
from inspector.store.readers.safetensors import contiguous_strides
from inspector.store.readers.streams import PIECE, StreamPart, sampled_parts, stream, whole_parts

# Codes of float8, as signed and as unsigned bytes, from which on they are no numbers: positive ones are the largest
# of signed bytes, negative ones of unsigned bytes, so that two maxima tell.
NO_NUMBERS = {torch.float8_e4m3fn: (0x7F, 0xFF), torch.float8_e5m2: (0x7C, 0xFC)}
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by the bytes of a number
MATRIX, WIDE = 2, 16  # axes of a matrix, and columns from which on equal numbers of a row are no chance
SUMMED = (torch.float32, torch.float64)  # types whose squares are added up as they are; others in float32
AT_ONCE = 1 << 18  # numbers whose squares are added up at once: 1 MB in float32 stays in a processor's cache
# Smaller sums of that many squares may have lost some of them: float32's smallest normal number is 1e-38.
LEAST_SQUARES = 1e-25
NO_MAXIMA = {torch.bool: torch.uint8, torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


@dataclass(frozen=True, slots=True)
class NumberFacts:
    """What some numbers are; `first` is the place of the first one that is not finite."""

    zero: bool  # every one is 0
    nan: int = 0
    infinite: int = 0
    first: int | None = None
    constant_rows: int = 0  # that lie in them whole, and hold one number all over
    squares: float = 0.0  # sum over the finite ones; 0 for whole numbers and floats of one byte, which may be codes
    zeros: int = 0  # counted in scales alone
    negative: int = 0  # likewise


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
    squares: float = (
        0.0  # sum over the finite numbers read, to about 1e-5 of it; 0 for whole numbers and floats of one byte
    )
    zeros: int = 0  # numbers that are 0, counted in scales alone
    negative: int = 0  # numbers below 0, likewise

    @property
    def numbers(self) -> int:
        """How many the tensor has."""
        return math.prod(self.tensor.shape)

    @property
    def rms(self) -> float:
        """Root mean square of the finite numbers read; NaN where there is none."""
        finite = self.read - self.nan - self.infinite
        return math.sqrt(self.squares / finite) if finite > 0 else math.nan


def take_census(
    manifest: Manifest,
    progress: Progress,
    *,
    sample: bool = False,
    scales: Iterable[TensorInfo] = (),
    threads: int | None = None,
    piece: int = PIECE,
) -> list[Census]:
    """Read every tensor of the files once, or evenly spaced pages of each.

    Args:
        sample: Read about a gigabyte in all; what lies in memory with gaps is left out.
        scales: Tensors whose zeros and negative numbers are counted.
        threads: That read and count; None: as many as processors, which changes no answer.
        piece: Bytes that each reads at once; rows that are longer are not looked at as rows.

    Returns:
        One entry a tensor that was read, in the manifest's order.

    Raises:
        CheckpointError: If a file cannot be read, or has changed.
    """
    places = {tensor.place: tensor for tensor in manifest.tensors if tensor.nbytes}  # names on the same bytes: once
    packed = [tensor for tensor in places.values() if is_packed(tensor)]
    loose = [] if sample else [tensor for tensor in places.values() if not is_packed(tensor)]
    parts = list(sampled_parts(packed, piece=piece)) if sample else list(whole_parts(packed, in_rows=True, piece=piece))
    what = "Reading a sample of the numbers" if sample else "Reading every number"
    pace = Pace(progress, what, sum(part.nbytes for part in parts) + sum(tensor.nbytes for tensor in loose))
    found: dict[Any, Census] = {}
    signed = {tensor.place for tensor in scales}

    def look_at(part: StreamPart, numbers: torch.Tensor) -> NumberFacts:
        return look_at_part(part, numbers, scales=part.tensor.place in signed)

    def looked_at() -> Iterator[tuple[StreamPart, NumberFacts]]:
        yield from stream(
            manifest, parts, lambda part, data: look_at(part, view_numbers(part, data)), threads=threads, piece=piece
        )
        for part, numbers in _mapped(manifest, loose):
            yield part, look_at(part, numbers)

    with single_threaded():
        for part, each in looked_at():
            place = part.tensor.place
            found[place] = _add(found.get(place, Census(part.tensor)), part, each)
            pace.add(part.nbytes)
    return [
        replace(found[tensor.place], tensor=tensor)
        for tensor in manifest.tensors
        if tensor.nbytes and tensor.place in found
    ]


def look_at_part(part: StreamPart, numbers: torch.Tensor, *, scales: bool = False) -> NumberFacts:
    """Say what the numbers of a part are, and which of its rows hold one number all over.

    Args:
        scales: Count zeros and negative numbers, too.
    """
    found = look(numbers)
    zeros, negative = _count_signs(numbers) if scales else (0, 0)
    constant = _count_constant(part, numbers, zero=found.zero)
    return replace(found, constant_rows=constant, zeros=zeros, negative=negative)


def _count_constant(part: StreamPart, numbers: torch.Tensor, *, zero: bool) -> int:
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


def _count_signs(numbers: torch.Tensor) -> tuple[int, int]:
    """How many are 0, and how many are less."""
    zeros = negative = 0
    for some in numbers.split(AT_ONCE):
        wide = some.float() if some.dtype.itemsize == 1 else some  # torch orders no float8
        zeros += int((wide == 0).sum())
        negative += int((wide < 0).sum())
    return zeros, negative


def look(numbers: torch.Tensor) -> NumberFacts:
    """Say what the numbers of one dimension are, in one pass where nothing is wrong with them."""
    if numbers.is_complex():
        return look(torch.view_as_real(numbers).reshape(-1))
    if numbers.dtype in NO_NUMBERS:
        return _look_at_float8(numbers)
    if not numbers.is_floating_point():
        return _look_for_extremes(numbers)
    if numbers.dtype.itemsize == 1:
        return _look_for_extremes(numbers.float())  # rare, and small: powers of two that scale codes
    return _look_at_floats(numbers)


def _look_at_floats(numbers: torch.Tensor) -> NumberFacts:
    """Add up squares: a sum that is neither tiny nor infinite also tells that all are finite, and not all 0."""
    squares, zero, finite = 0.0, True, True
    room = torch.empty(min(len(numbers), AT_ONCE))
    for some in numbers.split(AT_ONCE):
        wide = some if some.dtype in SUMMED else room[: len(some)].copy_(some)
        square = float(wide.dot(wide))
        if not LEAST_SQUARES < square < math.inf:
            low, high = _extremes(some)
            if low == high == 0:
                continue
            finite = finite and math.isfinite(low) and math.isfinite(high)
            square = _add_exactly(some)
        squares, zero = squares + square, False
    return replace(NumberFacts(zero) if finite else _count(numbers), squares=squares)


def _add_exactly(numbers: torch.Tensor) -> float:
    """The sum of the squares of those that are finite, in float64."""
    wide = numbers.double()
    finite = wide[wide.isfinite()]
    return float(finite.dot(finite))


def _extremes(numbers: torch.Tensor) -> tuple[float, float]:
    """The least and the most; both are NaN if one number is."""
    low, high = numbers.view(NO_MAXIMA.get(numbers.dtype, numbers.dtype)).aminmax()
    return float(low), float(high)


def _look_for_extremes(numbers: torch.Tensor) -> NumberFacts:
    low, high = _extremes(numbers)
    if not (math.isfinite(low) and math.isfinite(high)):
        return _count(numbers)
    return NumberFacts(zero=low == high == 0)


def _look_at_float8(numbers: torch.Tensor) -> NumberFacts:
    positive, negative = (int(numbers.view(kind).max()) for kind in (torch.int8, torch.uint8))
    least_positive, least_negative = NO_NUMBERS[numbers.dtype]
    if positive >= least_positive or negative >= least_negative:
        return _count(numbers.float())
    return NumberFacts(zero=positive <= 0 and negative <= 0x80)  # 0x80 is -0


def _count(numbers: torch.Tensor) -> NumberFacts:
    bad = (~torch.isfinite(numbers)).nonzero()[:, 0]
    nan = int(torch.isnan(numbers).sum())
    return NumberFacts(zero=False, nan=nan, infinite=len(bad) - nan, first=int(bad[0]))


def _mapped(manifest: Manifest, tensors: Iterable[TensorInfo]) -> Iterator[tuple[StreamPart, torch.Tensor]]:
    """The rows of views with gaps, of old files, as they are mapped."""
    for tensor in tensors:
        whole = StoredReader(manifest).read([tensor.name])[tensor.name]
        size = tensor.nbytes // len(whole)
        for row, numbers in enumerate(whole.split(1)):
            yield StreamPart(tensor, row * size, size), numbers.reshape(-1)


def _add(census: Census, part: StreamPart, found: NumberFacts) -> Census:
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
        squares=census.squares + found.squares,
        zeros=census.zeros + found.zeros,
        negative=census.negative + found.negative,
    )
