"""Parameter names that share memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


UNCOMPARED: Literal["not compared"] = "not compared"  # nobody can tell before the numbers are there
Verdict = Literal["tied", "equal copies", "diverged", "declared only", "alias only", "not compared"]
# What the file holds of a group; "no file" for a module in memory.
FileRelation = Literal[
    "one copy", "one storage", "equal copies", "different numbers", "no copy", "no file", "not compared"
]


@dataclass(frozen=True, slots=True)
class SharedMember:
    """One name of a group: the location of its tensor in memory and in the files."""

    name: str
    kind: Literal["parameter", "buffer"]
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    storage: int  # number of its storage in memory, by first appearance in the model
    offset: int  # of its first element from the start of that storage, in bytes
    stride: tuple[int, ...]  # in elements
    stored_as: str  # its name in the file; "" if the file has no bytes under it
    file: str  # "" likewise


@dataclass(frozen=True, slots=True)
class SharedGroup:
    """Names that share a tensor, or were meant to."""

    names: tuple[str, ...]  # sorted, at least two
    verdict: Verdict
    shape: tuple[int, ...]  # of the largest member
    nbytes: int  # of the largest member, as loaded
    declared: bool
    in_file: tuple[str, ...]  # what the file calls those of `names` that it holds, sorted
    in_memory: bool  # True: the names have bytes in common after loading
    reason: str  # one sentence
    file_relation: FileRelation
    aliases: tuple[str, ...]  # those of `names` that only the file's metadata lists, sorted
    listed_parameters: int  # every name counted, buffers left out
    unique_parameters: int  # every number in memory counted once
    listed_nbytes: int
    unique_nbytes: int
    members: tuple[SharedMember, ...]  # in the order of `names`


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
    # One row a parameter name, in the model's order, and one a buffer that shares: name, kind,
    # shape (text), dtype, parameters, nbytes, group (index into groups, -1: not shared), storage,
    # offset (bytes), stride (text), file ("" where the file holds no such name), file_offset
    # (bytes, -1 likewise), row (index into rows)
    tensors: pd.DataFrame = local()
    # One row a line of the graph, in the same order, whatever is not shared folded by block:
    # label, tensors (count), parameters, nbytes, shape (text, "" when folded), group (-1: none),
    # groups (indices of all groups that the line holds names of)
    rows: pd.DataFrame = local()
    model_class: str = local(default="")
