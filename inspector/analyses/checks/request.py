"""The question: is anything wrong with this checkpoint?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option

VALUES = ("auto", "all", "sample", "none")
WHOLE_GB = 20  # of weights that "auto" reads in full: 20 s from a disk that gives 1 GB/s


@dataclass(frozen=True)
class CheckRequest(Request):
    """Options of `check`: which numbers it reads."""

    verb = "check"

    values: str = option(
        "auto",
        f"Numbers to read: all, a sample of about 1 GB, or none; auto reads all of up to {WHOLE_GB} GB of weights and "
        "samples larger ones",
        label="Numbers read",
        choices=VALUES,
    )
