"""Sentences about what each step of the head does to a token."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.ladder.result import Climb
from inspector.text import plural

MOST = 5  # tokens with a line and a sentence of their own, besides the pinned ones
GEOMETRY = (
    "Each point is a token's input embedding e: further right, its direction fits the hidden state h better; further "
    "up, it is longer. Along a dotted line, h·e = |h||e| cos is constant, so a longer row needs less cosine for the "
    "same dot product. Cosine picks the rightmost token, the dot product the one beyond the highest line. If they "
    "differ, the norm makes the difference."
)
TRANSFORMED = (
    "The top token by logits may be anywhere: between the dot product and the logits, the head still changes h."
)


def steps_at(token: str) -> str:
    """What a cell's list of tokens shows."""
    return f"Head steps at {token}:"


def headline(climb: Climb) -> str:
    """What the steps did to the token that the last one names."""
    return f"At “{climb.token}”, {moves(climb, notable(climb, most=1)[0])}"


def moves(climb: Climb, token_id: int) -> str:
    """What each step did to a token: "+412 ranks from the norm of its embedding, …"."""
    way = pd.DataFrame(climb.ranks[climb.ranks["token_id"] == token_id]).to_dict("records")
    first, last = way[0], way[-1]
    steps = [f"{_signed(row['change'])} from {row['step']}" for row in way[1:] if row["change"] or len(way) <= 3]
    return (
        f"{first['token']}: rank {first['rank'] + 1:,} by {first['rung']}, {last['rank'] + 1:,} by {last['rung']}: "
        f"{', '.join(steps) or 'no step moved it'}."
    )


def _signed(change: int) -> str:
    sign = "+" if change > 0 else "−" if change < 0 else ""
    return f"{sign}{plural(abs(change), 'rank')}"


def notable(climb: Climb, *, most: int) -> list[int]:
    """Ids of the tokens that get a sentence: the best by the last step, and the pinned ones."""
    ranks = climb.ranks
    last = pd.DataFrame(ranks[ranks["rung"] == climb.rungs[-1]]).sort_values("rank")
    geometry = climb.geometry
    pinned = geometry.loc[geometry["pinned"], "token_id"].tolist()
    return list(dict.fromkeys([*last["token_id"].tolist()[:most], *pinned]))
