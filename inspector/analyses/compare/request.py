"""The question: what changed between two checkpoints?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option

VALUES = ("all", "sample", "none")


@dataclass(frozen=True)
class CompareRequest(Request):
    """Options of `compare`."""

    verb = "compare"

    # The computation takes its fingerprint; an address and a command line, its name.
    other: str = option(help="Checkpoint to compare with", label="Second checkpoint", flag="CHECKPOINT")
    moved: int = option(
        50,
        "Number of tokens to list, starting with those that moved furthest",
        label="Tokens that moved most",
        least=1,
        most=1_000,
    )
    values: str = option(
        "all",
        "Numbers to read: all of both checkpoints, a sample of about 1 GB of each, or none, which compares only "
        "names, shapes and dtypes",
        label="Numbers read",
        choices=VALUES,
    )
