"""Notes on what became of one tensor, or of one tie, between two checkpoints."""

from __future__ import annotations

UNREAD = "its numbers were not read"  # of a tensor that headers alone do not decide
BY_SAMPLE = "from a sample of"  # how the note of a tensor begins of which some numbers were read
SAMPLE = BY_SAMPLE + " {read:,} of {numbers:,} numbers"
UNREADABLE = "{dtype} and {other}: integers, or quantized in an unknown way, so they cannot be dequantized"
EQUALITY_ONLY = "{dtype}: compared for equality only"
SAME = "the same numbers, as {dtype}"
ROUNDED = "exactly what rounding to {dtype} gives"
OTHER_ROUNDED = "the first is exactly the second, rounded to {dtype}"
IN_PLACE_OF = "and is {other} instead of {dtype}"
TWO_SCHEMES = "{dtype} in the first, {other} in the second"
NEAREST = "{dtype}: each number is as close as its scale allows"
SOME_NEAREST = "{dtype}: {percent:.3g} % of the numbers are as close as their scales allow"
PACKED = "the {which} stores it as {name}, quantized in an unknown way"
# Why names that are tied in one checkpoint are not in the other.
NOTHING_TO_TIE = "{other} has no {names}, so there is nothing to tie."
APART = "In {other}, these names are not all one tensor."
