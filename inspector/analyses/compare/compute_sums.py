"""Add up how far numbers of two tensors are apart, some at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch

SPAN = 1 << 15  # numbers at once: three times as many in float64 stay in a processor's cache
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # whole numbers of so many bytes


@dataclass(slots=True)
class Sums:
    """Sums over pairs of numbers a, b, in float64; those of several tensors can be added."""

    apart: float = 0.0  # (b - a)²
    first: float = 0.0  # a²
    second: float = 0.0  # b²
    dot: float = 0.0  # ab
    max_abs: float = 0.0  # largest |b - a|
    count: int = 0  # pairs

    def add(self, other: Sums) -> None:
        """Add the sums of other pairs."""
        self.apart += other.apart
        self.first += other.first
        self.second += other.second
        self.dot += other.dot
        self.max_abs = max(self.max_abs, other.max_abs)
        self.count += other.count

    def scale(self, factor: float) -> None:
        """Let these pairs stand for so many times as many."""
        self.apart *= factor
        self.first *= factor
        self.second *= factor
        self.dot *= factor

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
class Found:
    """What a walk over two tensors finds; what was found of their pieces can be added."""

    sums: Sums = field(default_factory=Sums)
    equal: bool = True  # number by number
    rounded: bool = True  # the second is the first, rounded to its dtype
    other_rounded: bool = True  # the first is the second, rounded
    not_finite: int = 0
    other_not_finite: int = 0
    near: int = 0  # codes that stand for the number nearest to the other's
    read: int = 0  # numbers of each

    def add(self, other: Found) -> None:
        """Add what was found of another piece."""
        self.sums.add(other.sums)
        self.equal = self.equal and other.equal
        self.rounded = self.rounded and other.rounded
        self.other_rounded = self.other_rounded and other.other_rounded
        self.not_finite += other.not_finite
        self.other_not_finite += other.other_not_finite
        self.near += other.near
        self.read += other.read


def compare_numbers(one: torch.Tensor, other: torch.Tensor, *, span: int = SPAN) -> Found:
    """Compare two vectors of floats, of one length and any dtypes; they are widened to float64 exactly.

    Where either holds NaN or infinity, that place is counted and left out of the sums.

    Args:
        span: Numbers that are widened at once.
    """
    found = Found(read=len(one))
    if not len(one):
        return found
    room = torch.empty(3, min(span, len(one)), dtype=torch.float64)
    for a, b in zip(one.split(span), other.split(span), strict=True):
        if not _take_equal(found, a, b, room):
            _take(found, a, b, room)
    return found


def compare_bits(one: torch.Tensor, other: torch.Tensor) -> Found:
    """Compare two vectors of one dtype for equality alone."""
    return Found(equal=_same_bits(one, other), read=len(one))


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    bits = BITS.get(one.dtype.itemsize, torch.uint8)
    return np.array_equal(one.view(bits).numpy(), other.view(bits).numpy())  # several times as quick as torch's


def _take_equal(found: Found, one: torch.Tensor, other: torch.Tensor, room: torch.Tensor) -> bool:
    """Add numbers whose bytes are the same in both, which takes one sum; False where they are not, or not finite."""
    if one.dtype != other.dtype or not _same_bits(one, other):
        return False
    a = room[0, : len(one)].copy_(one)
    square = a.dot(a).item()
    if not math.isfinite(square):
        return False
    found.sums.add(Sums(first=square, second=square, dot=square, count=len(one)))
    return True


def _take(found: Found, one: torch.Tensor, other: torch.Tensor, room: torch.Tensor) -> None:
    if one.dtype != other.dtype:
        found.rounded = found.rounded and _same(one.to(other.dtype), other)
        found.other_rounded = found.other_rounded and _same(other.to(one.dtype), one)
    a, b, apart = room[:, : len(one)]
    sums = _sums(a.copy_(one), b.copy_(other), apart)
    if not math.isfinite(sums.first + sums.second):  # seldom, and much quicker to ask
        found.equal = found.equal and _same(a, b)
        finite, other_finite = a.isfinite(), b.isfinite()
        found.not_finite += int((~finite).sum())
        found.other_not_finite += int((~other_finite).sum())
        both = finite & other_finite
        a, b = a[both], b[both]
        sums = _sums(a, b, torch.empty_like(a)) if len(a) else Sums()
    found.equal = found.equal and not sums.max_abs
    found.sums.add(sums)


def _sums(a: torch.Tensor, b: torch.Tensor, apart: torch.Tensor) -> Sums:
    torch.sub(b, a, out=apart)
    low, high = apart.aminmax()
    return Sums(
        apart=apart.dot(apart).item(),
        first=a.dot(a).item(),
        second=b.dot(b).item(),
        dot=a.dot(b).item(),
        max_abs=max(-low.item(), high.item()),
        count=len(a),
    )


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())
