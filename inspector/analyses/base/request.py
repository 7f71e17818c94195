"""The question: is another checkpoint the base of this one?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option


@dataclass(frozen=True)
class BaseRequest(Request):
    """Options of `base`."""

    verb = "base"

    # The computation takes its fingerprint; an address and a command line, its name.
    other: str = option(help="Checkpoint that may be the base", label="Possible base", flag="CHECKPOINT")
