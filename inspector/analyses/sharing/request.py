"""The question: which parameters share memory?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request


@dataclass(frozen=True)
class SharingRequest(Request):
    """`sharing` has no options."""

    verb = "sharing"
