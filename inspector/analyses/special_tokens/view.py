"""Special tokens, and where a text ends."""

from __future__ import annotations

from itertools import repeat

import pandas as pd

from inspector.analyses.special_tokens import words
from inspector.analyses.special_tokens.result import SpecialTokens
from inspector.request import Request
from inspector.view.blocks import Bullets, Facts, Table
from inspector.view.view import Headline, Verdict, View, Why

COLUMNS = [
    "token", "token_id", "roles", "norm", "percentile", "row equals", "output_bias", "reachable", "single",
    "in_template", "files",
]  # fmt: skip
IF_ANY = ("row equals", "output_bias")  # columns that most checkpoints have nothing for
ROWS = 40  # of a tokenizer's special tokens that a page shows


def view(result: SpecialTokens, request: Request, *, name: str) -> View:
    """What ends a text, where files disagree, and every special token."""
    frame = result.tokens.assign(
        roles=[", ".join(each) for each in result.tokens["roles"]],
        files=[", ".join(each) for each in result.tokens["files"]],
    )
    frame["row equals"] = [
        words.equals(*row) for row in zip(frame["at_mean"], frame["equal_to"], repeat(result.names), strict=False)
    ]
    shown = [each for each in COLUMNS if each not in IF_ANY or any(frame[each].notna() & (frame[each] != ""))]
    facts = (Facts(words.facts(result)),) if result.template else ()  # else the headline says it all
    disagreements = (Bullets(result.disagreements),) if result.disagreements else ()
    return View(
        Headline(words.headline(result), _verdict(result)),
        beside=(
            *facts,
            *disagreements,
            Table("special_tokens", "Special tokens", pd.DataFrame(frame[shown]), rows=ROWS),
        ),
        why=(Why(words.WHY_STOPS, words.WHY_STOPS_ANSWER), Why(words.WHY_PADDING, words.WHY_PADDING_ANSWER)),
    )


def _verdict(result: SpecialTokens) -> Verdict | None:
    if result.stops is False:
        return "problem"
    if result.disagreements:
        return "warning"
    return "ok" if result.stops else None
