"""Where a model would run, planned from its headers before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass

DISK = "disk"  # a place beside the devices


@dataclass(frozen=True, slots=True)
class Place:
    """The part of a model on one device."""

    device: str  # "cuda:0", "mps", "cpu" or "disk"
    nbytes: int  # of weights; tied weights count once
    allowed_nbytes: int | None  # limit for weights there; None: no limit


@dataclass(frozen=True, slots=True)
class PlacementOption:
    """One of the ways to run a model."""

    device: str  # value of the option `device`
    dtype: str  # of its weights during computation; "" if it cannot run this way
    memory_nbytes: int  # of weights on devices and in main memory; for a streamed model: outside its blocks
    disk_nbytes: int  # of weights that are read again in every pass, in that dtype
    fits: bool  # within the limits for weights, as planned from the headers
    seconds: float | None  # estimate for the blocks of one pass, if streaming was asked for; None: not estimated
    note: str  # basis of the estimate, or why the model cannot run this way


@dataclass(frozen=True, slots=True)
class Placement:
    """The plan that places a model on devices."""

    device: str  # where it computes
    dtype: str  # of its weights during computation
    nbytes: int  # of all its weights in that dtype
    spread: bool  # True: across several places, by accelerate
    places: tuple[Place, ...]  # in the order in which they are filled
    reason: str  # one or two sentences: the plan and its reason
    streamed: bool = False  # True: its blocks of layers are read one at a time in every pass
    ways: tuple[PlacementOption, ...] = ()  # each way to run it
