"""The experts of a mixture: what the files hold of each, and how often a text uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class ExpertPlace:
    """One expert."""

    module: str  # the block that it belongs to
    expert: int  # its number, from 0


@dataclass(frozen=True, slots=True)
class MixtureExperts:
    """Every expert of every layer, by its weights; how often it is used is known only for a text."""

    model_class: str
    # One row an expert that the router can choose, by block and number: module (the block), expert, norm
    # (of all its numbers as one vector; NaN where the files do not hold all of them as numbers), zero, finite,
    # router_norm (of its row of the router), router_bias (of its score), selection_bias
    # (added to choose experts, not to weigh them), used (how many tokens of the text chose it; None where not counted)
    experts: pd.DataFrame
    # One row a module that every token runs through: module, block, parameters, norm (NaN as above)
    shared: pd.DataFrame
    duplicates: tuple[tuple[ExpertPlace, ...], ...]  # experts whose numbers are all the same, and not all 0
    tokens: int | None  # of the text; None without one
    per_token: int | None  # experts that one of them chose in a block, at most; None where none was counted
    warnings: tuple[str, ...]
