"""Which names share memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class SharedGroup:
    """Names that share a tensor, or were meant to."""

    names: tuple[str, ...]  # sorted, at least two
    verdict: str  # "tied", "equal copies", "diverged", "declared only", "alias only"
    shape: tuple[int, ...]
    nbytes: int  # one copy, as loaded
    declared: bool
    in_file: tuple[str, ...]  # those of `names` whose bytes the file holds, sorted
    in_memory: bool  # True: the names occupy the same bytes after loading
    reason: str  # one sentence


@dataclass(frozen=True, slots=True)
class ReusedModule:
    """A module that one forward pass runs more than once."""

    name: str  # the module's first name
    uses: int  # how often one forward pass runs it


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which names share which memory."""

    listed_parameters: int
    unique_parameters: int
    listed_nbytes: int
    unique_nbytes: int
    groups: tuple[SharedGroup, ...]  # largest first
    reused_modules: tuple[ReusedModule, ...]
    warnings: tuple[str, ...]
    # One row a parameter name, in execution order: name, shape (text), dtype, parameters, nbytes,
    # group (index into groups, -1: not shared), file ("" where the file holds no such name)
    tensors: pd.DataFrame = local()
    # One row a line of the graph, in execution order, whatever is not shared folded by block:
    # label, tensors (count), parameters, nbytes, shape (text, "" when folded), group (-1: none)
    rows: pd.DataFrame = local()
