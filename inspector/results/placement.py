"""Where a model would run, as its headers say before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass

DISK = "disk"  # a place beside the devices


@dataclass(frozen=True, slots=True)
class Place:
    """What one device holds of a model."""

    device: str  # "cuda:0", "mps", "cpu" or DISK
    nbytes: int  # of weights, what is tied counted once
    allowed_nbytes: int | None  # that weights may take there; None: as much as there is


@dataclass(frozen=True, slots=True)
class Way:
    """One of the ways to run a model."""

    device: str  # what the option `device` is for it
    dtype: str  # of its weights while they are computed with; "" where it cannot run so
    memory_nbytes: int  # of weights on devices and in main memory; a streamed model: beside its blocks
    disk_nbytes: int  # of weights that are read again at every pass, in that dtype
    fits: bool  # within what weights may take
    seconds: float | None  # that the blocks of one pass are estimated to take; None: not estimated
    note: str  # what the estimate is made of, or why the model cannot run so


@dataclass(frozen=True, slots=True)
class Placement:
    """The plan by which a model is put on devices."""

    device: str  # where it computes
    dtype: str  # of its weights while they are computed with
    nbytes: int  # of all its weights in that dtype
    spread: bool  # True: over several places, by accelerate
    places: tuple[Place, ...]  # in the order in which they are filled
    reason: str  # one or two sentences: what is done, and why
    streamed: bool = False  # True: its blocks of layers are read one at a time, at every pass
    ways: tuple[Way, ...] = ()  # each way to run it, if that was asked for
