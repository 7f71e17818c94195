"""What each step of the head does to a token."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.ladder import words
from inspector.analyses.ladder.figures import figure
from inspector.analyses.ladder.request import LadderRequest
from inspector.analyses.ladder.result import Climb
from inspector.view.blocks import Block, Bullets, Figure, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View

MOST = 5  # tokens with a sentence of their own


def view(climb: Climb, request: LadderRequest, *, name: str) -> View:
    """The ranks of tokens from step to step, and what moved them."""
    return View(
        Headline(words.headline(climb)),
        picture=Picture(
            Figure(
                "ladder",
                lambda theme: figure(climb, name=name, theme=theme),
                "Ranks of tokens from step to step of the head, as lines",
            )
        ),
        beside=(Bullets(tuple(words.moves(climb, token) for token in words.notable(climb, most=MOST))),),
        tabs=(Tab("Ranks", lambda: _ranks(climb)), Tab("Geometry", lambda: _geometry(climb))),
    )


def _ranks(climb: Climb) -> Iterator[Block]:
    yield Table("ranks", "Rank of every token at every step", climb.ranks)


def _geometry(climb: Climb) -> Iterator[Block]:
    yield Sentence(words.GEOMETRY)
    yield Table("geometry", "Norm, cosine and dot product of every token", climb.geometry)
