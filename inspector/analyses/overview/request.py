"""The question: what is in this checkpoint?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option


@dataclass(frozen=True)
class OverviewRequest(Request):
    """Options of `overview`."""

    verb = "overview"

    hash_files: bool = option(False, "Compute the SHA-256 of every file, which reads every byte", flag="--hash")
    tensors: bool = option(
        False, "List every tensor: name, shape, dtype, size, file and ties", flag="--tensors/--no-tensors"
    )
    find: str = option(
        "",
        "List only tensors with this text in the name, shape, dtype or file; * in a name, as in layers.*.bias, "
        "matches any number",
        label="Find tensors",
    )
