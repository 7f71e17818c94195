"""The question: does every expert differ, and which ones does a text use?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector import placing
from inspector.request import Request, option
from inspector.settings import Device, Dtype


@dataclass(frozen=True)
class ExpertsRequest(Request):
    """Options of `experts`; without a text no model runs."""

    verb = "experts"

    text: str = option("", "Text whose tokens are counted for each expert; without it no model runs")
    device: Device = placing.device()
    dtype: Dtype = placing.dtype()
