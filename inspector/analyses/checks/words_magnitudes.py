"""What is said about the sizes of weights."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.checks.result import Checks
from inspector.analyses.checks.words import such_as
from inspector.text import plural

HEADING = "Weight magnitudes"  # of the table, and name of the check
TABLE = (
    "Root mean square (RMS) of each stored float matrix: its norm, divided by the square root of the count of its "
    "numbers. NaN and infinity are not counted. Matrices with the same shape share a row if their names differ only in "
    "numbers. Quantized weights, vectors and constant tables are left out."
)


def table(checks: Checks) -> str:
    """What the table of magnitudes contains."""
    return f"{TABLE} Only a sample of the numbers was read." if checks.values == "sample" else TABLE


def no_siblings(least: int) -> str:
    """No median tells what is usual."""
    return f"no {least} float matrices have the same shape and names that differ only in numbers."


def compared(count: int, groups: int, far: Sequence[str], *, times: int, least: int) -> str:
    """What was compared, and the matrices that are unlike their siblings."""
    matrices, limit = plural(count, "float matrix", "float matrices"), f"more than {times} times or less than 1/{times}"
    alike = f"at least {least} with the same shape and with names that differ only in numbers"
    if not far:
        return (
            f"{matrices} in {plural(groups, 'group')} ({alike}) were compared: no root mean square (RMS) is {limit} of "
            "its group's median."
        )
    return (
        f"The root mean square (RMS) of {len(far):,} of {matrices} {such_as(len(far), far[0])} is {limit} of the "
        f"median of its group ({alike}): scaled, merged or saved in another way?"
    )


def in_sample(said: str) -> str:
    """The same, where only a sample of the numbers was read."""
    return f"{said} Only a sample of the numbers was read."


def far_off(rms: float, median: float, matrices: int) -> str:
    """How far a matrix is from the median of its siblings."""
    times = f"1/{median / rms:.3g} of" if 0 < rms < median else f"{rms / median:.3g} times"
    return f"RMS {rms:.3g}: {times} the median {median:.3g} of {matrices:,} matrices with this name pattern and shape."
