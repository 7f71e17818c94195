"""What a tokenizer makes of a text."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.tokenization import words
from inspector.analyses.tokenization.request import TokenizeRequest
from inspector.analyses.tokenization.result import Tokenization
from inspector.view.blocks import Facts, Sentence, Table
from inspector.view.view import Headline, Tab, View

COLUMNS = ["sequence", "position", "token", "token_id", "text", "word", "is_special", "is_unknown"]
ROWS = 200  # of the tokens that a page shows


def view(result: Tokenization, request: TokenizeRequest, *, name: str) -> View:
    """The tokens, and the batch that they make."""
    tokens = pd.DataFrame(result.tokens[COLUMNS])
    several = len(result.batch) > 1
    return View(
        Headline(words.headline(result)),
        beside=(
            Facts(words.facts(result)),
            Table("tokens", "Tokens", tokens if several else tokens.drop(columns="sequence"), rows=ROWS),
        ),
        more="--json prints every token with its characters.",
        tabs=(
            Tab("Batch", lambda: [Sentence(words.padding(result)), Table("batch", words.batch(result), result.batch)]),
            Tab("Every column", lambda: [Table("columns", "Every token", result.tokens)]),
        ),
    )
