"""The question: how plausible is every token in its own place?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector import placing
from inspector.request import Request, option
from inspector.settings import Device, Dtype


@dataclass(frozen=True)
class PlausibilityRequest(Request):
    """Options of `plausibility`."""

    verb = "plausibility"

    text: str = option(help="Text to judge")
    by: str = option(
        "token",
        "For masked language models, how much to mask at a time; token: each token alone, so the tokens of a long "
        "word give each other away; word: also the rest of its word, so a token sees only the earlier part of its "
        "word (Kauf and Ivanova 2023)",
        label="Masked unit",
        choices=("token", "word"),
    )
    k: int = option(5, "Most likely tokens listed for each position", label="Alternatives", least=1, most=100)
    device: Device = placing.device()
    dtype: Dtype = placing.dtype()
