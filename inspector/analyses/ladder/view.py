"""What each step of the head does to a token."""

from __future__ import annotations

import math
from collections.abc import Iterator

from inspector.analyses.ladder import words
from inspector.analyses.ladder.figures import figure
from inspector.analyses.ladder.request import LadderRequest
from inspector.analyses.ladder.result import Climb
from inspector.view.blocks import Block, Bullets, Figure, Grid, Sentence, Table
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
            ),
            _grid(climb),
        ),
        beside=(Bullets(tuple(words.moves(climb, token) for token in words.notable(climb, most=MOST))),),
        more="--json prints every rank, and the norm, cosine and dot product of each token.",
        tabs=(Tab("Ranks", lambda: _ranks(climb)), Tab("Geometry", lambda: _geometry(climb))),
    )


def _grid(climb: Climb) -> Grid:
    """The lines as text: the rank of few tokens at every step."""
    records = climb.ranks.to_dict("records")
    rows = [[row for row in records if row["token_id"] == token] for token in words.notable(climb, most=MOST)]
    ranks = [{row["rung"]: row["rank"] for row in each} for each in rows]
    return Grid(
        tuple(each[0]["token"] for each in rows),
        climb.rungs,
        tuple(tuple(f"{each[rung] + 1:,}" for rung in climb.rungs) for each in ranks),
        tuple(tuple(1 / (1 + math.log10(each[rung] + 1)) for rung in climb.rungs) for each in ranks),
        "rank of the token at each step, 1 darkest",
    )


def _ranks(climb: Climb) -> Iterator[Block]:
    yield Table("ranks", "Rank of every token at every step", climb.ranks)


def _geometry(climb: Climb) -> Iterator[Block]:
    yield Sentence(words.GEOMETRY)
    yield Table("geometry", "Norm, cosine and dot product of every token", climb.geometry)
