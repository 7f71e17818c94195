"""The question: why are two texts similar?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.placing import device, dtype
from inspector.request import Request, option
from inspector.results.sentences import MODES
from inspector.settings import Device, Dtype

DECLARED = "declared"


@dataclass(frozen=True)
class SimilarityRequest(Request):
    """Options of `similarity`."""

    verb = "similarity"

    texts: tuple[str, ...] = option(
        (),
        "A text; give two or more, and the first is compared with each of the others",
        flag="--text",
        split=False,
        items=32,
    )
    pooling: str = option(
        DECLARED,
        "How the hidden states of a text become one vector; declared: as modules.json and the files beside it state",
        choices=(DECLARED, *MODES),
    )
    prompt: str = option("", "Name of a prompt that the checkpoint states; empty: its default prompt, if it has one")
    device: Device = device()
    dtype: Dtype = dtype()
