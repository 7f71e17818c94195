"""Effect of a change on a model's ties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd

# What can be done, with the question that it answers.
CHANGES = {
    "untie": "What if the output layer had its own matrix?",
    "clone": "What if tied tensors were cloned, as TorchScript export does?",
    "resize": "What if the vocabulary grew?",
    "half": "What if the weights were cast to half precision?",
    "reload": "What if the model were saved and loaded again?",
}
EXAMPLE = "Paris is the capital and largest city of France."  # where no text is given
OPTIMIZERS = ("adamw", "sgd")
# How two names stand to each other; "random" where a loader finds no bytes for one of them.
RELATIONS = ("one tensor", "equal copies", "different numbers", "another dtype", "another shape", "random")


@dataclass(frozen=True, slots=True)
class Drift:
    """How far two tensors are apart, over the rows that both have."""

    max_abs: float  # largest difference of two numbers; NaN if either tensor holds one
    relative: float  # norm of the difference by the norm of the source
    cosine: float  # of the two as one long vector each, -1..1


@dataclass(frozen=True, slots=True)
class Edge:
    """Two names that are one tensor, or that the class could tie."""

    name: str
    source: str  # the name whose tensor it is, or would be
    shape: tuple[int, ...]  # of the source, before
    before: str  # one of RELATIONS
    after: str  # likewise, in memory after the change
    reloaded: str | None  # after saving and loading that; None: not saved, or refused by the loader
    trained: str | None  # likewise after the training steps; None: no step
    trained_reloaded: str | None  # after saving and loading that; None: not drifted
    drift: Drift | None  # after the change; None where shapes have nothing in common
    trained_drift: Drift | None  # after the training steps; None: no step


@dataclass(frozen=True, slots=True)
class HeldTensor:
    """A tensor of a saved file that one of the names above is read from."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    storage: int  # number of its storage in the file: equal for two names of the same bytes


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file that was written to disk, according to its header."""

    format: str  # "safetensors" or "pytorch"
    nbytes: int  # of the file
    tensors: int  # names that it holds
    held: tuple[HeldTensor, ...]  # those of the edges' names
    lacking: tuple[str, ...]  # those of the edges' names that are not in the file, sorted
    aliases: tuple[str, ...]  # those that its metadata lists as second names, sorted
    random: tuple[str, ...]  # names that a loader finds nowhere and fills at random, sorted
    refused: str  # why transformers refused to load it again; "" if it did not


@dataclass(frozen=True, slots=True)
class Training:
    """One or more optimizer steps on the given text."""

    loss: float  # before the first step
    loss_after: float  # after the last
    labels: int  # positions that the loss counts


@dataclass(frozen=True, slots=True)
class ChangedModel:
    """One way to make the change, and its results."""

    title: str
    code: str  # the code that was run
    answer: str  # one or two sentences
    edges: tuple[Edge, ...]
    unique_parameters: int  # every number in memory once
    nbytes: int  # likewise
    file: SavedFile | None  # None: not saved
    training: Training | None
    not_trained: str  # why there was no step; "" where there was


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A change made to a copy of the model in memory, measured before and after."""

    change: str  # one of CHANGES
    model_class: str
    answer: str  # of all ways, or why there is none
    tied: bool  # whether any edge was one tensor before
    original: ChangedModel  # the model as it is, trained on the same text
    ways: tuple[ChangedModel, ...]  # none where there is nothing to change
    listed_parameters: int
    unique_parameters: int
    listed_nbytes: int
    unique_nbytes: int
    vocab: int
    d_model: int
    text: str
    steps: int
    learning_rate: float
    optimizer: str
    warnings: tuple[str, ...]
    # One row a way and edge: way, name, source, before, after, saved_and_loaded, after_training,
    # trained_and_loaded, largest_difference, largest_difference_after_training,
    # relative_change_after_training, cosine_after_training
    table: pd.DataFrame = local()
