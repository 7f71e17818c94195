"""What a comparison is made of: a stored tensor, and what was found of two; no torch is imported."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from inspector.analyses.compare.result import FLOATS
from inspector.models.quantized.layout import PLAIN, Quantized
from inspector.store.manifests.columns import TensorInfo
from inspector.store.manifests.manifest import Manifest


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a checkpoint's files."""

    manifest: Manifest
    info: TensorInfo
    changed: Quantized | None = None  # how it is read, where that is not as it is stored: codes, or another order
    unread: bool = False  # codes that cannot be read as numbers

    @property
    def quantized(self) -> Quantized | None:
        """How, where it is stored as codes."""
        return self.changed if self.changed and self.changed.kind != PLAIN else None

    @property
    def readable(self) -> bool:
        """Whether there are numbers to compare."""
        return self.quantized is not None or (self.info.dtype in FLOATS and not self.unread)

    @property
    def dtype(self) -> str:
        """What it is stored as, in words."""
        return self.quantized.scheme if self.quantized else self.info.dtype

    @property
    def place(self) -> tuple[Any, ...]:
        """Where and how it lies; the same for names on the same bytes."""
        if self.quantized:
            return (self.info.name,)
        return self.info.place

    @property
    def nbytes(self) -> int:
        """Of the files, that are read for it."""
        parts = self.quantized.parts.values() if self.quantized else (self.info,)
        return sum(part.nbytes for part in parts)


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
class PairFacts:
    """What a walk over two tensors finds; what was found of their pieces can be added."""

    sums: Sums = field(default_factory=Sums)
    equal: bool = True  # number by number
    rounded: bool = True  # the second is the first, rounded to its dtype
    other_rounded: bool = True  # the first is the second, rounded
    not_finite: int = 0
    other_not_finite: int = 0
    near: int = 0  # codes that stand for the number nearest to the other's
    read: int = 0  # numbers of each

    def add(self, other: PairFacts) -> None:
        """Add what was found of another piece."""
        self.sums.add(other.sums)
        self.equal = self.equal and other.equal
        self.rounded = self.rounded and other.rounded
        self.other_rounded = self.other_rounded and other.other_rounded
        self.not_finite += other.not_finite
        self.other_not_finite += other.other_not_finite
        self.near += other.near
        self.read += other.read
