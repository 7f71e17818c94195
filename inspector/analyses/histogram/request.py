"""The question: how are the numbers of a tensor distributed?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option


@dataclass(frozen=True)
class HistogramRequest(Request):
    """Options of `histogram`: which tensor is read."""

    verb = "histogram"

    tensor: str = option("", "Name of the tensor, as `overview --tensors` lists it; default: the largest")
