"""The question: which parameters share memory?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request


@dataclass(frozen=True)
class SharingRequest(Request):
    """`sharing` has no options."""

    verb = "sharing"

    count_reuse: bool = True  # for other rooms, which need no count of the modules that run more than once
