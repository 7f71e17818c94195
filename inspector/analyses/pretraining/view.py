"""What the pre-training objective asks of the model."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.heads.result import NOT_CHOSEN
from inspector.analyses.pretraining import words
from inspector.analyses.pretraining.request import PretrainRequest
from inspector.analyses.pretraining.result import Pretraining
from inspector.view.blocks import Facts, Table
from inspector.view.view import Headline, Tab, View, Why

COLUMNS = ["position", "before", "what", "after", "prediction", "probability", "loss"]


def view(result: Pretraining, request: PretrainRequest, *, name: str) -> View:
    """The losses, and the tokens that count."""
    chosen = pd.DataFrame(result.tokens.loc[result.tokens["what"] != NOT_CHOSEN, COLUMNS])
    return View(
        Headline(words.headline(result)),
        beside=(
            Facts(words.losses(result)),
            Table("chosen", "The chosen tokens: what the model reads, and what it predicts", chosen),
        ),
        more="--json prints every token.",
        tabs=(Tab("Tokens", lambda: [Table("tokens", "Every token", result.tokens)]),),
        why=(Why(words.WHY_MASKING, words.MASKING),),
    )
