"""Measure how far apart two stored tensors are, block by block: neither is ever in memory whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from inspector.models.tensors import read_tensors
from inspector.store.copies import is_packed, read_pieces
from inspector.store.manifest import Manifest, TensorInfo

BLOCK = 1 << 20  # numbers read at once of each
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})  # become float64 exactly


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a checkpoint's files."""

    manifest: Manifest
    info: TensorInfo


@dataclass(slots=True)
class Sums:
    """Sums over pairs of numbers a, b, in float64; those of several tensors can be added."""

    apart: float = 0.0  # (b - a)²
    first: float = 0.0  # a²
    second: float = 0.0  # b²
    dot: float = 0.0  # ab
    max_abs: float = 0.0  # largest |b - a|
    count: int = 0  # pairs

    def take(self, one: torch.Tensor, other: torch.Tensor) -> None:
        """Add finite numbers, two vectors of one length in float64."""
        if not len(one):
            return
        apart = other - one
        self.apart += apart.dot(apart).item()
        self.max_abs = max(self.max_abs, apart.abs_().max().item())
        self.first += one.dot(one).item()
        self.second += other.dot(other).item()
        self.dot += one.dot(other).item()
        self.count += len(one)

    def add(self, other: Sums) -> None:
        """Add the sums of another tensor."""
        self.apart += other.apart
        self.first += other.first
        self.second += other.second
        self.dot += other.dot
        self.max_abs = max(self.max_abs, other.max_abs)
        self.count += other.count

    @property
    def relative_change(self) -> float:
        """|b - a| / |a|; NaN where a is zero everywhere and b is not, or nothing was taken."""
        if not self.count or (self.apart and not self.first):
            return math.nan
        return math.sqrt(self.apart / self.first) if self.apart else 0.0

    @property
    def cosine(self) -> float:
        """Of a and b as one long vector each, -1..1; NaN where either is zero everywhere."""
        both = math.sqrt(self.first) * math.sqrt(self.second)
        if both and not self.apart:
            return 1.0
        return max(-1.0, min(1.0, self.dot / both)) if both else math.nan


@dataclass(slots=True)
class Measured:
    """What became of one tensor."""

    status: str  # one of results.STATUSES
    sums: Sums | None = None  # None: not measured
    not_finite: int = 0
    other_not_finite: int = 0
    note: str = ""


@dataclass(slots=True)
class _Found:
    """What a walk over two tensors of floats finds."""

    sums: Sums = field(default_factory=Sums)
    equal: bool = True  # number by number
    rounded: bool = True  # the second is the first, rounded to its dtype
    other_rounded: bool = True  # the first is the second, rounded
    not_finite: int = 0
    other_not_finite: int = 0

    def take(self, one: torch.Tensor, other: torch.Tensor) -> None:
        if one.dtype != other.dtype:
            self.rounded = self.rounded and _same(one.to(other.dtype), other)
            self.other_rounded = self.other_rounded and _same(other.to(one.dtype), one)
        a, b = one.double(), other.double()
        self.equal = self.equal and _same(a, b)
        if not (a.dot(a) + b.dot(b)).isfinite():  # seldom, and much quicker to ask
            finite, other_finite = a.isfinite(), b.isfinite()
            self.not_finite += int((~finite).sum())
            self.other_not_finite += int((~other_finite).sum())
            a, b = a[finite & other_finite], b[finite & other_finite]
        self.sums.take(a, b)


def compare_tensors(first: Stored, second: Stored) -> Measured:
    """Say what became of a tensor.

    Floats are widened to float64 exactly and compared number by number; |b - a| / |a| and the
    cosine are those of the flattened tensors. Where either holds NaN or infinity, that place is
    counted and left out. Whole numbers, and floats that need a scale beside them, are compared for
    equality of their bytes alone.

    Args:
        first: Before.
        second: After.
    """
    one, other = first.info, second.info
    plain = {one.dtype, other.dtype} <= FLOATS
    if not plain and one.dtype != other.dtype:
        return Measured("not compared", note=_unreadable(one.dtype, other.dtype))
    if one.shape != other.shape:
        return Measured("reshaped")
    return _compare_floats(first, second) if plain else _compare_codes(first, second)


def _compare_floats(first: Stored, second: Stored) -> Measured:
    found = _Found()
    for one, other in _pairs(first, second):
        found.take(one, other)
    status, note = _judge(found, first.info.dtype, second.info.dtype)
    sums = found.sums if found.sums.count else None
    return Measured(status, sums, found.not_finite, found.other_not_finite, note)


def _judge(found: _Found, dtype: str, other_dtype: str) -> tuple[str, str]:
    if dtype == other_dtype:
        return ("equal" if found.equal else "changed"), ""
    if found.equal:
        return "dtype changed", f"the same numbers, as {other_dtype}"
    if found.rounded:
        return "dtype changed", f"exactly what rounding to {other_dtype} gives"
    if found.other_rounded:
        return "dtype changed", f"the first is exactly the second, rounded to {dtype}"
    return "changed", f"and is {other_dtype} in place of {dtype}"


def _compare_codes(first: Stored, second: Stored) -> Measured:
    pairs = _pairs(first, second)
    if all(torch.equal(one.view(torch.uint8), other.view(torch.uint8)) for one, other in pairs):
        return Measured("equal")
    return Measured("changed", note=f"{first.info.dtype}: compared for equality only")


def _unreadable(dtype: str, other_dtype: str) -> str:
    return (
        f"{dtype} against {other_dtype}: packed, quantised or whole numbers cannot be read as "
        "the floats that they stand for"
    )


def _pairs(first: Stored, second: Stored) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Numbers of both in one order, a block at a time."""
    one, other = first.info, second.info
    if is_packed(one) and is_packed(other) and one.strides == other.strides:
        return zip(_pieces(first), _pieces(second), strict=True)
    return zip(_mapped(first), _mapped(second), strict=True)  # another order: only old .bin files


def _pieces(stored: Stored) -> Iterator[torch.Tensor]:
    dtype = getattr(torch, stored.info.dtype)
    for piece in read_pieces(stored.manifest, stored.info, count=BLOCK):
        yield torch.frombuffer(bytearray(piece), dtype=dtype)


def _mapped(stored: Stored) -> Iterator[torch.Tensor]:
    name = stored.info.name
    yield from read_tensors(stored.manifest, [name])[name].reshape(-1).split(BLOCK)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())
