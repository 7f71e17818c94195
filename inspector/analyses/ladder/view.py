"""What each step of the head does to a token."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from inspector.analyses.ladder import words
from inspector.analyses.ladder.figures import figure, geometry_plot
from inspector.analyses.ladder.request import LadderRequest
from inspector.analyses.ladder.result import Climb
from inspector.view.blocks import Block, Bullets, Figure, Grid, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View

SEEN = ("token", "token_id", "norm", "cosine", "dot", "bias", "logit", "probability")


def view(climb: Climb, request: LadderRequest, *, name: str) -> View:
    """The ranks of tokens from step to step, and what moved them."""
    ranks = Figure(
        "ladder",
        lambda theme: figure(climb, name=name, ids=words.notable(climb, most=words.MOST), theme=theme),
        "Ranks of tokens from step to step of the head, as lines",
    )
    return View(
        Headline(words.headline(climb)),
        picture=Picture(ranks if len(climb.rungs) > 1 else None, _grid(climb)),
        beside=(Bullets(tuple(words.moves(climb, token) for token in words.notable(climb, most=words.MOST))),),
        more="--json prints every rank, and the norm, cosine and dot product of each token.",
        tabs=(Tab("Ranks", lambda: _ranks(climb)), Tab("Geometry", lambda: _geometry(climb, name))),
    )


def _grid(climb: Climb) -> Grid:
    """The lines as text: the rank of few tokens at every step."""
    records = climb.ranks.to_dict("records")
    rows = [[row for row in records if row["token_id"] == token] for token in words.notable(climb, most=words.MOST)]
    ranks = [{row["rung"]: row["rank"] for row in each} for each in rows]
    return Grid(
        tuple(each[0]["token"] for each in rows),
        climb.rungs,
        tuple(tuple(f"{each[rung] + 1:,}" for rung in climb.rungs) for each in ranks),
        tuple(tuple(1 / (1 + math.log10(each[rung] + 1)) for rung in climb.rungs) for each in ranks),
        "rank of the token at each step, 1 darkest",
    )


def _ranks(climb: Climb) -> Iterator[Block]:
    ranks = climb.ranks.assign(rank=climb.ranks["rank"] + 1)
    yield Table("ranks", "Rank of every token at every step, 1 is the best", ranks)


def _geometry(climb: Climb, name: str) -> Iterator[Block]:
    known = pd.DataFrame(climb.geometry[climb.geometry["cosine"].notna()])
    if len(known):
        yield Figure(
            "geometry",
            lambda theme: geometry_plot(
                known,
                climb.ranks,
                hidden_norm=climb.hidden_norm,
                title=f"Direction and length, {name}",
                subtitle=f"layer {climb.layers[climb.layer]}, position {climb.position}, |h| = {climb.hidden_norm:.3g}",
                theme=theme,
            ),
            "Tokens by cosine with the hidden state and by norm; the table below lists the numbers",
        )
    yield Sentence(f"{words.GEOMETRY} {words.TRANSFORMED}" if "logits" in climb.rungs else words.GEOMETRY)
    yield Table("tokens", "Norm, cosine and dot product of every token", climb.geometry, seen=SEEN)
