"""Special tokens, and where a text ends."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.special_tokens import words
from inspector.analyses.special_tokens.result import SpecialTokens
from inspector.request import Request
from inspector.view.blocks import Bullets, Facts, Table
from inspector.view.view import Headline, Verdict, View, Why

COLUMNS = ["token", "token_id", "roles", "norm", "percentile", "reachable", "single", "in_template", "files"]
ROWS = 40  # of a tokenizer's special tokens that a page shows


def view(result: SpecialTokens, request: Request, *, name: str) -> View:
    """What ends a text, where files disagree, and every special token."""
    frame = result.tokens.assign(
        roles=[", ".join(each) for each in result.tokens["roles"]],
        files=[", ".join(each) for each in result.tokens["files"]],
    )
    facts = (Facts(words.facts(result)),) if result.template else ()  # else the headline says it all
    disagreements = (Bullets(result.disagreements),) if result.disagreements else ()
    return View(
        Headline(words.headline(result), _verdict(result)),
        beside=(
            *facts,
            *disagreements,
            Table("special_tokens", "Special tokens", pd.DataFrame(frame[COLUMNS]), rows=ROWS),
        ),
        why=(Why(words.WHY_STOPS, words.WHY_STOPS_ANSWER), Why(words.WHY_PADDING, words.WHY_PADDING_ANSWER)),
    )


def _verdict(result: SpecialTokens) -> Verdict | None:
    if result.stops is False:
        return "problem"
    if result.disagreements:
        return "warning"
    return "ok" if result.stops else None
