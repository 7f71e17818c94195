"""The question: what does each step of the head do to a token?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.analyses.lens.request import ReadingRequest
from inspector.request import option


@dataclass(frozen=True)
class LadderRequest(ReadingRequest):
    """Options of `ladder`."""

    verb = "ladder"

    layer: int = option(-1, "Hidden state to read; 0 = embeddings, -1 = the last one")
    position: int = option(-1, "Position of the token whose state is read; -1 = the last one")
