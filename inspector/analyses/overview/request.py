"""The question: what is in this checkpoint?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option


@dataclass(frozen=True)
class OverviewRequest(Request):
    """Options of `overview`."""

    verb = "overview"

    hash_files: bool = option(False, "Compute the SHA-256 of every file, which reads all of it", flag="--hash")
