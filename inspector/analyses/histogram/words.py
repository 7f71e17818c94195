"""Sentences about the numbers of a tensor."""

from __future__ import annotations

from inspector.analyses.histogram.result import Histogram
from inspector.text import percent_text, shape_text

EMPTY = "{name} has no numbers: one of its axes is 0 long. Choose another tensor."
CODES = (
    "{name} holds quantized codes in a format that the inspector cannot read as numbers, so there is nothing to count. "
    "Choose another tensor."
)
COMPLEX = "{name} holds complex numbers, which have no order to count them by. Choose another tensor."
NOTHING = "{name} has no tensor whose numbers can be read. `overview` lists its files."


def headline(found: Histogram) -> str:
    """What the numbers are, in a sentence."""
    if found.least is None or found.most is None or found.rms is None:
        return f"{found.tensor}: none of its numbers is finite."
    if found.least == found.most:
        said = f"every number is {found.least:.4g}"
    else:
        said = f"numbers from {found.least:.4g} to {found.most:.4g}, RMS {found.rms:.4g}"
    bad = [f"{count:,} {what}" for count, what in ((found.nan, "NaN"), (found.infinite, "infinite")) if count]
    return f"{found.tensor}: {said}" + (f"; {' and '.join(bad)}." if bad else ".")


def coverage(found: Histogram) -> str:
    """How many of the numbers were read."""
    if not found.is_sample:
        return f"all {found.numbers:,}"
    return f"a sample: {found.read:,} of {found.numbers:,}, evenly spaced"


def facts(found: Histogram) -> dict[str, str]:
    """The tensor and its numbers."""
    stored = f"{found.dtype}, dequantized from {found.scheme}" if found.scheme else found.dtype
    numbers = {"Least": found.least, "Largest": found.most, "Mean": found.mean, "RMS": found.rms}
    return {
        "Shape": shape_text(found.shape) or "a single number",
        "Dtype": stored,
        "File": found.file,
        "Numbers read": coverage(found),
        **{name: f"{value:.4g}" for name, value in numbers.items() if value is not None},
        "Zeros": f"{found.zeros:,}, {percent_text(found.zeros / found.read)}" if found.zeros else "none",
        "NaN or infinite": f"{found.nan:,} NaN, {found.infinite:,} infinite" if found.nan or found.infinite else "none",
    }
