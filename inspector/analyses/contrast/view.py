"""How two texts differ over the whole vocabulary."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.contrast import words
from inspector.analyses.contrast.figures import figure, names_of
from inspector.analyses.contrast.request import ContrastRequest
from inspector.analyses.contrast.result import Contrast
from inspector.view.blocks import Figure, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View

SEEN = ("token", "difference", "first", "second", "token_id")


def view(result: Contrast, request: ContrastRequest, *, name: str) -> View:
    """Likelihood against difference, and the tokens that each text makes more likely."""
    first, second = names_of(result)
    return View(
        Headline(words.headline(result, (first, second))),
        picture=Picture(
            Figure(
                "contrast",
                lambda theme: figure(result, name=name, theme=theme),
                "Each token of the vocabulary as a point: its likelihood, and how far the two texts differ on it",
            )
        ),
        more="-o FILE.csv or FILE.parquet writes the whole vocabulary.",
        beside=(
            Sentence(words.JENSEN_SHANNON),
            _tokens("first", f"More likely with {first}", result.favours_first),
            _tokens("second", f"More likely with {second}", result.favours_second),
        ),
        tabs=(Tab("All tokens", lambda: [_tokens("tokens", "Every token of the vocabulary", result.tokens)]),),
    )


def _tokens(name: str, title: str, frame: pd.DataFrame) -> Table:
    return Table(name, title, frame, seen=SEEN, meanings=words.COLUMNS)
