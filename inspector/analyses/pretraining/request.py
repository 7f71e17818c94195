"""The question: what must the model predict in pre-training?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.placing import device, dtype, seed
from inspector.request import Request, option
from inspector.settings import Device, Dtype


@dataclass(frozen=True)
class PretrainRequest(Request):
    """Options of `pretrain`."""

    verb = "pretrain"

    text: str = option(help="Input text")
    pair: str = option("", "The text that may follow; without one there is no next-sentence loss", label="Second text")
    follows: bool = option(
        True, "The next-sentence label", label="The second text follows the first", flag="--follows/--does-not-follow"
    )
    share: float = option(0.15, "Share of the ordinary tokens to choose for masking", above=0, most=1, step=0.05)
    seed: int = seed()
    device: Device = device()
    dtype: Dtype = dtype()
