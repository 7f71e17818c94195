"""The question: which tokens does each layer's hidden state stand for?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector import placing
from inspector.request import Request, option
from inspector.settings import Device, Dtype


@dataclass(frozen=True)
class ReadingRequest(Request):
    """Options of every question that reads hidden states as tokens."""

    text: str = option(help="Input text; for an encoder-decoder model, the encoder's input")
    k: int = option(
        5, "Number of tokens to list for each cell and head step", label="Tokens per cell", least=1, most=100
    )
    pins: tuple[str, ...] = option(
        (),
        "Tokens whose rank to show in every cell and head step, comma-separated",
        label="Pinned tokens",
        flag="--pin",
        items=8,
    )
    decoder_text: str = option("", "Text that the decoder has generated so far")
    device: Device = placing.device()
    dtype: Dtype = placing.dtype()


@dataclass(frozen=True)
class LensRequest(ReadingRequest):
    """Options of `lens`."""

    verb = "lens"

    layers: tuple[int, ...] = option(
        (), 'Hidden states to read, such as "0,6,12" or "0-3"; 0 = embeddings; default: all'
    )
