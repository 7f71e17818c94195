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
    other: str = option(help="The second checkpoint", label="Second checkpoint", flag="CHECKPOINT")
    align: bool = option(
        False,
        "Rotate one embedding space onto the other before comparing tokens (orthogonal Procrustes), for models "
        "trained from different starts or with different widths",
        label="Rotate one embedding space onto the other first",
    )
    moved: int = option(
        50, "Tokens listed, those that moved furthest first", label="Tokens that moved most", least=1, most=1_000
    )
    values: str = option(
        "all",
        "Numbers that are read: all of both checkpoints, a sample of about 1 GB of each, or none: names, shapes and "
        "dtypes are then compared alone",
        label="Numbers read",
        choices=VALUES,
    )
