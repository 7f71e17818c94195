"""The question: which classes is this model made of, and what does it return?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option


@dataclass(frozen=True)
class ClassesRequest(Request):
    """Options of `classes`."""

    verb = "classes"

    text: str = option("the capital and largest city of France.", "Input text")
