"""The question: what tokens does a text become?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option


@dataclass(frozen=True)
class TokenizeRequest(Request):
    """Options of `tokenize`."""

    verb = "tokenize"

    texts: tuple[str, ...] = option(
        help="Input text; several texts make a padded batch", flag="--text", split=False, items=64
    )
    pair: str = option("", "Second text of the first sequence", label="Second text")
