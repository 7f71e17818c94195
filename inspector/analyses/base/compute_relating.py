"""Compare the prints of two checkpoints, matrix by matrix."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from inspector.analyses.base.compute_prints import Print, Sample, part_of

SHOWN_RANK = 0.5  # of a sample's side: a difference of a higher rank is none of a few directions
LANGUAGE_MODEL = "language_model"
NOISE = 4.0  # times what rounding explains, up to which a singular value is no direction


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike the samples of one matrix are; NaN and None where they are equal."""

    name: str
    other_name: str
    equal: bool
    cosine: float = math.nan
    coefficient: float = math.nan
    relative_change: float = math.nan
    rank: int | None = None  # of the difference; None: more than half the sample's side

    def row(self) -> list[Any]:
        """Its fields."""
        return [
            self.name, self.other_name, self.equal, self.cosine, self.coefficient, self.relative_change, self.rank,
        ]  # fmt: skip


def compare_prints(first: Print, second: Print) -> list[Likeness]:
    """Compare what both have, in the first's order."""
    fitting = ((one, [two for two in named if _fits(one, two)]) for one, named in _pairs(first, second))
    return [_compare(one, named[0]) for one, named in fitting if len(named) == 1]


def share_names(first: Print, second: Print) -> bool:
    """Whether a matrix of one has a name of the other, whatever its shape."""
    return any(named for _, named in _pairs(first, second))


def _pairs(first: Print, second: Print) -> Iterator[tuple[Sample, list[Sample]]]:
    """Samples, and those of the other checkpoint with their name, or else with one that has a prefix more or less."""
    bare, ends = defaultdict(list), defaultdict(list)
    for name, two in second.samples.items():
        bare[_bare(name)].append(two)
        ends[part_of(name)].append(two)
    for name, one in first.samples.items():
        if name in second.samples:
            yield one, [second.samples[name]]
        else:
            own = _bare(name)
            yield one, bare[own] or [two for two in ends[part_of(name)] if _differ_by_prefix(own, _bare(two.name))]


def _bare(name: str) -> str:
    """A name in a language model alone: in one that reads images, transformers puts a part into it, at any place."""
    return ".".join(part for part in name.split(".") if part != LANGUAGE_MODEL)


def _differ_by_prefix(one: str, two: str) -> bool:
    return f".{one}".endswith(f".{two}") or f".{two}".endswith(f".{one}")


def _fits(one: Sample, two: Sample) -> bool:
    """Whether the numbers are of the same places: one may have some rows more, as for added tokens."""
    return one.shape[1] == two.shape[1] and one.steps == two.steps and one.numbers.shape == two.numbers.shape


def _compare(one: Sample, two: Sample) -> Likeness:
    own, base = one.numbers.double(), two.numbers.double()
    whole = own.isfinite() & base.isfinite()
    own, base = own.where(whole, 0), base.where(whole, 0)
    change = own - base
    rounding, least = 0.0, 0.0
    if one.rounding != two.rounding:
        rounding, least = max(one.rounding, two.rounding), max(one.least_rounding, two.least_rounding)
    if bool((change.abs() <= rounding * torch.maximum(own.abs(), base.abs()) + least).all()):
        return Likeness(one.name, two.name, equal=True)
    length = float(base.norm())
    return Likeness(
        one.name,
        two.name,
        equal=False,
        cosine=_cosine(own - own.mean(), base - base.mean()),
        coefficient=float((own * base).sum()) / length**2 if length else math.nan,
        relative_change=float(change.norm()) / length if length else math.nan,
        rank=_rank(
            change, max(one.rounding, two.rounding, 2.0**-23) * float(torch.maximum(own.abs(), base.abs()).max())
        ),
    )


def _cosine(one: torch.Tensor, two: torch.Tensor) -> float:
    lengths = float(one.norm() * two.norm())
    return float((one * two).sum()) / lengths if lengths else math.nan


def _rank(change: torch.Tensor, rounding: float) -> int | None:
    """How many directions a difference has; None where it has more than a sample can tell from all.

    Args:
        rounding: How far the largest number may be off.
    """
    values = torch.linalg.svdvals(change)
    noise = NOISE * rounding * 3**-0.5 * max(change.shape) ** 0.5
    rank = int((values > max(noise, 1e-6 * float(values[0]))).sum())
    return rank if 0 < rank <= SHOWN_RANK * min(change.shape) else None
