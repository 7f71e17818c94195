"""How plausible a text is, token by token."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.plausibility import words
from inspector.analyses.plausibility.figures import figure
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.view.blocks import Bars, Block, Figure, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View, Why

LISTED = 2  # alternatives of a token on a terminal
SEEN = ("position", "token", "probability", "rank", "bits", "log_probability", "most_likely_here")


def view(result: Plausibility, request: PlausibilityRequest, *, name: str) -> View:
    """The text colored by surprisal, and what its tokens add up to."""
    return View(
        Headline(words.headline(result)),
        picture=Picture(
            Figure(
                "plausibility",
                lambda theme: figure(result, name=name, theme=theme),
                "The text's tokens as boxes; a stronger color means a more surprising token",
            ),
            _bars(result),
        )
        if result.judged
        else None,
        beside=(Sentence(words.totals(result)),) if result.judged else (),
        tabs=(Tab("Tokens", lambda: [_tokens(result)]), Tab("Alternatives", lambda: _alternatives(result))),
        why=tuple(_why(result)),
        more="--json prints the log probability of each token, and -k alternatives at its position.",
    )


def _bars(result: Plausibility) -> Bars:
    """How surprising each token is, as text, and what else would be likely there."""
    instead = words.alternatives(result, count=LISTED)
    rows = [row for row in result.tokens.to_dict("records") if row["judged"]]
    return Bars(
        tuple(row["token"] for row in rows),
        tuple(row["bits"] for row in rows),
        tuple(f"{row['bits']:.1f} bits, rank {row['rank']:,}; {instead[row['position']]}" for row in rows),
    )


def _tokens(result: Plausibility) -> Table:
    instead = words.alternatives(result, count=LISTED + 1)
    tokens = result.tokens.assign(
        most_likely_here=[instead.get(position, "") for position in result.tokens["position"].tolist()]
    )
    return Table("plausibility", "Every token", tokens, seen=SEEN, meanings=words.COLUMNS)


def _why(result: Plausibility) -> Iterator[Why]:
    if result.judged:
        yield Why(words.WHY_MEASURES, words.measures(result))
    if result.method == "causal":
        yield Why(words.WHY_CAUSAL, words.CAUSAL)


def _alternatives(result: Plausibility) -> Iterator[Block]:
    if len(result.alternatives):
        yield Table("alternatives", "Most likely tokens at each position", result.alternatives)
