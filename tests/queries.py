"""Read a request from an address, each option as its field on a page reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from inspector.request import Request, from_text, kinds_of, options

T = TypeVar("T", bound=Request)


def from_query(request: type[T], query: Mapping[str, str]) -> T:
    kinds, known = kinds_of(request), options(request)
    return request(
        **{name: from_text(text, kinds[name], name=name, split=known[name].split) for name, text in query.items()}
    )
