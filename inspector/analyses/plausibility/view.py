"""How plausible a text is, token by token."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.plausibility import words
from inspector.analyses.plausibility.figures import figure
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.view.blocks import Block, Figure, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View


def view(result: Plausibility, request: PlausibilityRequest, *, name: str) -> View:
    """The text colored by surprisal, and what its tokens add up to."""
    return View(
        Headline(words.headline(result)),
        picture=Picture(
            Figure(
                "plausibility",
                lambda theme: figure(result, name=name, theme=theme),
                "The text's tokens as boxes; a stronger color means a more surprising token",
            )
        )
        if result.judged
        else None,
        beside=tuple(_beside(result)),
        tabs=(
            Tab("Tokens", lambda: [Table("plausibility", "Every token", result.tokens)]),
            Tab("Alternatives", lambda: _alternatives(result)),
        ),
    )


def _beside(result: Plausibility) -> Iterator[Block]:
    if result.method == "causal":
        yield Sentence(words.CAUSAL)
    if result.judged:
        yield Sentence(words.totals(result))


def _alternatives(result: Plausibility) -> Iterator[Block]:
    if len(result.alternatives):
        yield Table("alternatives", "Most likely tokens at each position", result.alternatives)
