"""Replay a merge in the ways in which tools round it, and compare what comes out bit by bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from inspector.models.adapters.deltas import Delta, Low, Rows
from inspector.models.adapters.rounding import NF4_BLOCK, SHORT, UNIT, rounded, through_nf4

EPSILON = UNIT[torch.float32]  # sums of 16-bit numbers are made in float32
At = slice | torch.Tensor
Ends = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True)
class MergeWay:
    """One way to merge."""

    procedure: str
    dtype: torch.dtype  # of the sum
    first: bool = False  # the change is rounded before it is added
    low: Low | None = None
    coded: bool = False  # the base's numbers went through NF4


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight of the base, the same of the merged model, and the change between them."""

    base: Rows
    merged: Rows
    delta: Delta
    dtype: torch.dtype | None  # of the base; None: it is quantized
    stored: torch.dtype  # of the merged
    coarse: float  # half the distance between 1 and the next number, of the shortest dtype that may have been used
    blocks: Sequence[At]

    columns: int

    @property
    def _own(self) -> tuple[torch.dtype, ...]:
        """The dtypes of a sum that need no explanation."""
        own = (torch.bfloat16, torch.float16, torch.float32) if self.dtype is None else (self.dtype, torch.float32)
        return tuple(dict.fromkeys(own))

    def usual_ways(self) -> Iterator[MergeWay]:
        """The base's numbers and the adapter's as they are."""
        for dtype in self._own:
            yield MergeWay("P1" if self.dtype else "P5", dtype)
            yield MergeWay("P2" if self.dtype else "P5", dtype, first=True)

    def other_ways(self) -> Iterator[MergeWay]:
        """One of them, or the sum, in other numbers."""
        if self.delta.can_be_low:
            for dtype in self._own:
                for low in SHORT:
                    yield MergeWay("P3", dtype, low=Low(low, twice=False))
                    yield MergeWay("P3", dtype, low=Low(low, twice=True))
        for dtype in SHORT:
            if dtype not in self._own:
                yield MergeWay("P4", dtype)
                yield MergeWay("P4", dtype, first=True)
        if self.dtype is not None and self.columns % NF4_BLOCK == 0:
            for dtype in (torch.bfloat16, torch.float16, torch.float32):
                yield MergeWay("P5", dtype, coded=True)


@dataclass(slots=True)
class ReplayEvidence:
    """What the numbers of one weight say, added up over blocks of rows."""

    equal: bool = True  # the merged is the base, rounded to its dtype
    dot: float = 0.0  # ⟨merged − base, change⟩
    square: float = 0.0  # |change|²
    noise: float = 0.0  # variance of `dot` that rounding explains
    rows: int = 0
    open: list[MergeWay] = field(default_factory=list)  # ways that replay all that was looked at

    @property
    def coefficient(self) -> float:
        """How often the change was added, as the least squares have it."""
        return self.dot / self.square

    @property
    def error(self) -> float:
        """Standard error of the coefficient that rounding explains."""
        return self.noise**0.5 / self.square


def look(weight: Weight) -> ReplayEvidence:
    """Compare a weight with the base, and with what each way of merging gives; unusual ways if no other does."""
    found = ReplayEvidence(open=list(weight.usual_ways()))
    for at in weight.blocks:
        base, merged = weight.base(at), weight.merged(at)
        _, _, change = weight.delta.bounds(at, base)
        found.rows += len(base)
        found.equal = found.equal and bool((rounded(base, weight.stored) == merged).all())
        found.dot += float(((merged - base) * change).sum())
        found.square += float(change.square().sum())
        found.noise += float((2 * weight.coarse * merged * change).square().sum()) / 12
        found.open = [way for way in found.open if _fits(merged, _replay(weight, way, at, base), weight.stored)]
    if not found.open:
        found.open = [way for way in weight.other_ways() if _replays(weight, way)]
    return found


def within(weight: Weight, times: float) -> bool:
    """Whether base and so many times the change differ from the merged by no more than rounding explains."""
    for at in weight.blocks:
        base, merged = weight.base(at), weight.merged(at)
        low, high, change = weight.delta.bounds(at, base)
        loose = 2 * weight.coarse * (base.abs() + merged.abs()) + max(4 * weight.coarse, 2.0**-9) * change.abs()
        slack = (high - low).abs() * max(abs(times), 1.0) + loose * max(abs(times), 1.0)
        if not bool(((merged - base - times * change).abs() <= slack).all()):
            return False
    return True


def replays(weight: Weight, times: float, *, one_by_one: bool = False) -> bool:
    """Whether adding the change so many times, at once or one by one, gives the merged numbers."""
    return any(_replays(weight, way, times, one_by_one=one_by_one) for way in weight.usual_ways())


def _replays(weight: Weight, way: MergeWay, times: float = 1.0, *, one_by_one: bool = False) -> bool:
    return all(
        _fits(weight.merged(at), _replay(weight, way, at, weight.base(at), times, one_by_one=one_by_one), weight.stored)
        for at in weight.blocks
    )


def _fits(merged: torch.Tensor, ends: Ends, stored: torch.dtype) -> bool:
    low, high = (rounded(end, stored) for end in ends)
    return bool(((merged >= low) & (merged <= high)).all())


def _replay(
    weight: Weight, way: MergeWay, at: At, base: torch.Tensor, times: float = 1.0, *, one_by_one: bool = False
) -> Ends:
    """Least and largest numbers that a way of merging can give, before they are stored."""
    base = rounded(through_nf4(base) if way.coded else base, way.dtype)
    low, high, _ = weight.delta.bounds(at, base, way.low)
    share = 1.0 if one_by_one else times
    low, high = torch.minimum(low * share, high * share), torch.maximum(low * share, high * share)
    if way.first:
        low, high = rounded(low, way.dtype), rounded(high, way.dtype)
    least = most = base
    for _ in range(int(times) if one_by_one else 1):
        least, most = least + low, most + high
        least = rounded(least - EPSILON * least.abs(), way.dtype)
        most = rounded(most + EPSILON * most.abs(), way.dtype)
    return least, most
