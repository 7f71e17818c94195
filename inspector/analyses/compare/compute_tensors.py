"""Measure how far apart two stored tensors are, block by block: neither is ever in memory whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from inspector.analyses.compare.result import FLOATS
from inspector.models.quantized.codes import Opened, open_codes
from inspector.models.quantized.layout import Quantized
from inspector.models.tensors import read_tensors
from inspector.store.copies import is_packed, read_pieces
from inspector.store.manifest import Manifest, TensorInfo

BLOCK = 1 << 20  # numbers read at once of each
HALF = 1.001  # of what separates two codes: numbers that lie between them fall either way


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a checkpoint's files."""

    manifest: Manifest
    info: TensorInfo
    quantised: Quantized | None = None  # how, where it is stored as codes
    unread: bool = False  # codes that cannot be read as numbers

    @property
    def readable(self) -> bool:
        """Whether there are numbers to compare."""
        return self.quantised is not None or (self.info.dtype in FLOATS and not self.unread)

    @property
    def dtype(self) -> str:
        """What it is stored as, in words."""
        return self.quantised.scheme if self.quantised else self.info.dtype


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
    nearest: float = math.nan  # share of the numbers that are the nearest that the scales allow


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
    counted and left out. Codes are compared as the numbers that they and their scales stand for;
    whole numbers, and codes that cannot be read, for equality of their bytes alone.

    Args:
        first: Before.
        second: After.
    """
    readable = first.readable and second.readable
    if not readable and (first.dtype != second.dtype or first.readable != second.readable):
        return Measured("not compared", note=_unreadable(first.dtype, second.dtype))
    if first.info.shape != second.info.shape:
        return Measured("reshaped")
    if first.quantised or second.quantised:
        return _compare_quantised(first, second)
    return _compare_floats(first, second) if readable else _compare_codes(first, second)


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


def _compare_quantised(first: Stored, second: Stored) -> Measured:
    """Compare what codes stand for, with other codes or with plain floats."""
    turned = any(each.quantised and each.quantised.flipped for each in (first, second))
    one, other = _matrix(first, turned=turned), _matrix(second, turned=turned)
    whole = math.prod(first.info.shape)
    columns = first.info.shape[-2 if turned else -1]
    found, near = _Found(), 0
    size = max(1, BLOCK // columns)
    for begin in range(0, whole // columns, size):
        part = slice(begin, min(begin + size, whole // columns))
        a, b = one.rows(part), other.rows(part)
        found.take(a.reshape(-1), b.reshape(-1))
        if not (first.quantised and second.quantised):
            plain, codes, coded = (a, b, other) if second.quantised else (b, a, one)
            best = coded.nearest(part, plain.float()).double()
            plain, codes = plain.double(), codes.double()
            near += int(((codes - plain).abs() <= HALF * (best - plain).abs()).sum())
    sums = found.sums if found.sums.count else None
    measured = Measured("changed", sums, found.not_finite, found.other_not_finite)
    if first.quantised and second.quantised:
        measured.status = "changed" if not found.equal else "equal"
        if first.dtype != second.dtype:
            measured.note = f"{first.dtype} in the first, {second.dtype} in the second"
            measured.status = "dtype changed" if found.equal else "changed"
        return measured
    measured.status = "dtype changed" if found.equal else "quantised"
    measured.nearest = near / max(1, whole)
    measured.note = _quantised_note(second.dtype if second.quantised else first.dtype, measured)
    return measured


def _quantised_note(scheme: str, measured: Measured) -> str:
    if measured.status == "dtype changed":
        return f"the same numbers, as {scheme}"
    if measured.nearest == 1:
        return f"{scheme}: each number is the nearest that its scale allows"
    return f"{scheme}: {100 * measured.nearest:.3g} % of the numbers are the nearest that their scales allow"


def _matrix(stored: Stored, *, turned: bool) -> Opened:
    """A tensor as rows of a matrix (out, in); `turned`: its model keeps it as (..., in, out)."""
    if stored.quantised:
        return open_codes(stored.manifest, stored.quantised)
    name = stored.info.name
    tensor = read_tensors(stored.manifest, [name])[name]
    tensor = tensor.mT if turned else tensor
    matrix = tensor.reshape(-1, tensor.shape[-1])
    return Opened(matrix.__getitem__, lambda part, _: matrix[part])


def _compare_codes(first: Stored, second: Stored) -> Measured:
    pairs = _pairs(first, second)
    if all(torch.equal(one.view(torch.uint8), other.view(torch.uint8)) for one, other in pairs):
        return Measured("equal")
    return Measured("changed", note=f"{first.info.dtype}: compared for equality only")


def _unreadable(dtype: str, other_dtype: str) -> str:
    return f"{dtype} against {other_dtype}: integers, or quantized in an unknown way, so they cannot be dequantized"


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
