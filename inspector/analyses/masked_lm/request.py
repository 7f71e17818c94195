"""The question: what does the model predict for a mask?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector import placing
from inspector.request import Request, option
from inspector.settings import Device, Dtype


@dataclass(frozen=True)
class PredictRequest(Request):
    """Options of `predict`."""

    verb = "predict"

    text: str = option(help="Input text with one or more mask tokens")
    masks: tuple[int, ...] = option(
        (), "Positions of additional tokens to mask; 0 is the first special token", flag="--mask"
    )
    k: int = option(10, "Number of tokens to list for each mask", label="Tokens per mask", least=1, most=1_000)
    targets: tuple[str, ...] = option(
        (),
        "Rank only these words, comma-separated; a word of several tokens is scored token by "
        "token; default: the whole vocabulary",
        label="Compare only these words",
    )
    order: str = option(
        "left",
        "Order in which several masks are filled, each given the ones before it; left: left to right; sure: the "
        "most confident mask first",
        label="Filling order",
        choices=("left", "sure"),
    )
    device: Device = placing.device()
    dtype: Dtype = placing.dtype()
