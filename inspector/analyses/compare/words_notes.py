"""Notes on what became of one tensor, or of one tie, between two checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

UNREAD = "its numbers were not read"  # of a tensor that headers alone do not decide
BY_SAMPLE = "by a sample of"  # how the note of a tensor begins of which some numbers were read


def unreadable(dtype: str, other_dtype: str) -> str:
    """Numbers of two types that nothing can compare."""
    return f"{dtype} against {other_dtype}: integers, or quantized in an unknown way, so they cannot be dequantized"


def equality_only(dtype: str) -> str:
    """Numbers that have no distance here."""
    return f"{dtype}: compared for equality only"


def by_sample(read: int, numbers: int, note: str) -> str:
    """How many numbers were read, before what was found of them."""
    return f"{BY_SAMPLE} {read:,} of {numbers:,} numbers{f'; {note}' if note else ''}"


def same_as(dtype: str) -> str:
    """Another type for the same numbers."""
    return f"the same numbers, as {dtype}"


def rounded_to(dtype: str) -> str:
    """The second is the first, rounded."""
    return f"exactly what rounding to {dtype} gives"


def rounded_from(dtype: str) -> str:
    """The first is the second, rounded."""
    return f"the first is exactly the second, rounded to {dtype}"


def in_place_of(dtype: str, other_dtype: str) -> str:
    """Another type, and other numbers."""
    return f"and is {other_dtype} in place of {dtype}"


def two_schemes(first: str, second: str) -> str:
    """How either is quantized."""
    return f"{first} in the first, {second} in the second"


def nearest(scheme: str, share: float) -> str:
    """How many of the quantized numbers are the nearest to the others, 0..1."""
    if share == 1:
        return f"{scheme}: each number is the nearest that its scale allows"
    return f"{scheme}: {100 * share:.3g} % of the numbers are the nearest that their scales allow"


def stored_as(which: str, name: str) -> str:
    """A tensor that the first or the second holds in a form that is not read."""
    return f"the {which} has it as {name}, quantized in an unknown way"


def nothing_to_tie(other: str, missing: Sequence[str]) -> str:
    """The other checkpoint lacks the names of a tie."""
    return f"{other} has no {', '.join(missing)}, so there is nothing that could be tied."


def apart(other: str) -> str:
    """The other checkpoint has the names of a tie, and does not tie them."""
    return f"In {other} these names are not all one tensor."
