"""The question: what does this adapter change?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option


@dataclass(frozen=True)
class AdapterRequest(Request):
    """Options of `adapter`; the checkpoint that is asked is the adapter."""

    verb = "adapter"

    # The computation takes its fingerprint; an address and a command line, its name.
    base: str = option(
        "", "Model that the adapter was trained on, to measure what of the change a merge keeps", label="Base model"
    )
