"""The question: is anything wrong with this checkpoint?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request


@dataclass(frozen=True)
class CheckRequest(Request):
    """`check` has no options; those of its verb say what becomes of the answer."""

    verb = "check"
