"""Special tokens, and where a text ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """What every file of a checkpoint says of its special tokens."""

    # One row a token, by id: token (visible), token_id, roles (list: "eos", "pad", "ends a turn", …), files (list: who
    # names it), norm (of its embedding row; NaN where there is none), percentile (share of all rows that are
    # shorter, 0..100), at_mean (its row is the mean of all rows, as resizing gives it to a new token), equal_to (list:
    # the first ids whose rows are the same to the bit), output_bias (NaN where there is none), in_template (None
    # without a chat template), reachable (typing it gives this id), single (and nothing else)
    tokens: pd.DataFrame
    eos_ids: tuple[int, ...]  # at which generate() stops
    eos_from: str  # the file that says so; "" where none does
    turn_end: str | None  # the token that the chat template puts after an answer
    stops: bool | None  # whether that one is among eos_ids; None: no chat template tells
    disagreements: tuple[str, ...]  # sentences
    template: str = ""  # the file that the chat template is in
    template_problem: str = ""  # why nothing became of it; "" otherwise

    @property
    def names(self) -> dict[int, str]:
        """Id -> visible token, of the tokens that are listed."""
        return dict(zip(self.tokens["token_id"], self.tokens["token"], strict=True))
