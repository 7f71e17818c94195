"""Compare the sizes of weights: those of matrices that differ only in their layer or expert are much alike."""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from inspector.analyses.checks import words_magnitudes as words
from inspector.analyses.checks.compute_census import Census
from inspector.analyses.checks.compute_dtypes import is_matrix, is_table
from inspector.analyses.checks.compute_parts import MAGNITUDES, conclude, nothing_to_check
from inspector.analyses.checks.result import Check, Evidence, MatrixNorms
from inspector.names import group_names

FAR = 8  # times the median, or a part of it, from which on a matrix is unlike its siblings
SIBLINGS = 4  # matrices from which on a median tells what is usual
MOST = 300  # patterns that are listed: DeepSeek-V3's 90,427 names have fewer


@dataclass(frozen=True, slots=True)
class Siblings:
    """Matrices of one shape whose names differ only in their places in lists."""

    pattern: str  # with the spans of these places; of one matrix its name
    members: tuple[Census, ...]  # in the manifest's order
    median: float  # of the root mean squares


def find_siblings(census: Sequence[Census], parts: Collection[str]) -> list[Siblings]:
    """Group the matrices whose numbers have been squared.

    Args:
        parts: Names of what is stored of quantized weights, which are left out.
    """
    known = [each for each in census if _is_measured(each) and each.tensor.name not in parts]
    groups = group_names([each.tensor.name for each in known], [each.tensor.shape for each in known])
    siblings = []
    for group in groups:
        members = tuple(known[place] for place in group.places)
        siblings.append(Siblings(group.label, members, median(each.rms for each in members)))
    return siblings


def list_norms(siblings: Sequence[Siblings]) -> tuple[MatrixNorms, ...]:
    """One row a pattern and shape, in the manifest's order; of too many those with the most numbers."""
    sizes = [sum(each.numbers for each in group.members) for group in siblings]
    largest = sorted(range(len(sizes)), key=lambda place: -sizes[place])[:MOST]
    return tuple(_describe(siblings[place]) for place in sorted(largest))


def pack_rms(names: Sequence[str], siblings: Sequence[Siblings], census: Sequence[Census]) -> bytes:
    """What was measured of each tensor, as `Checks.measured` has it.

    Args:
        names: Of the stored tensors.
        census: What was found in their numbers.
    """
    found = {each.tensor.name: each.rms for group in siblings for each in group.members}
    found |= {each.tensor.name: math.inf for each in census if each.nan + each.infinite and not is_table(each.tensor)}
    return struct.pack(f"<{len(names)}d", *(found.get(name, math.nan) for name in names))


def check_magnitudes(siblings: Sequence[Siblings], *, whole: bool) -> Check:
    """No matrix is many times larger or smaller than its siblings.

    Args:
        whole: False: a sample was read.
    """
    compared = [group for group in siblings if len(group.members) >= SIBLINGS and group.median]
    if not compared:
        return nothing_to_check(MAGNITUDES, words.no_siblings(SIBLINGS))
    evidence = [
        Evidence(
            each.tensor.name,
            "larger than its siblings" if each.rms > group.median else "smaller than its siblings",
            "note",
            None,
            words.far_off(each.rms, group.median, len(group.members)),
        )
        for group in compared
        for each in group.members
        if not each.zero and not 1 / FAR <= each.rms / group.median <= FAR  # zeros have a check of their own
    ]
    count = sum(len(group.members) for group in compared)
    said = words.compared(count, len(compared), [each.subject for each in evidence], times=FAR, least=SIBLINGS)
    return conclude(MAGNITUDES, evidence, said if whole else words.in_sample(said))


def _is_measured(census: Census) -> bool:
    dtype = getattr(torch, census.tensor.dtype)
    squared = (dtype.is_floating_point or dtype.is_complex) and dtype.itemsize > 1
    return squared and is_matrix(census.tensor) and not is_table(census.tensor) and math.isfinite(census.rms)


def _describe(group: Siblings) -> MatrixNorms:
    lowest, highest = (choose(group.members, key=lambda each: each.rms) for choose in (min, max))
    return MatrixNorms(
        pattern=group.pattern,
        shape=lowest.tensor.shape,
        tensors=len(group.members),
        lowest_rms=lowest.rms,
        median_rms=group.median,
        highest_rms=highest.rms,
        lowest_tensor=lowest.tensor.name,
        highest_tensor=highest.tensor.name,
    )
