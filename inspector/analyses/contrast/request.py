"""The question: which tokens does one text make more likely than another?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector import placing
from inspector.request import Request, option
from inspector.settings import Device, Dtype


@dataclass(frozen=True)
class ContrastRequest(Request):
    """Options of `contrast`."""

    verb = "contrast"

    first: str = option(help="A text with exactly one mask token")
    second: str = option(help="Another text with exactly one mask token", label="Second sentence")
    k: int = option(10, "Number of tokens to list for each text", label="Tokens per text", least=1, most=1_000)
    device: Device = placing.device()
    dtype: Dtype = placing.dtype()
