"""The question: what changes over training steps?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option


@dataclass(frozen=True)
class VitalsRequest(Request):
    """Options of `vitals`, the same for every snapshot of a run."""

    verb = "vitals"

    tokens: tuple[str, ...] = option(
        (), 'Tokens to follow, as text or "id 37"; default: the first special tokens', flag="--token", items=32
    )
    k: int = option(10, "Number of neighbors of each token", label="Neighbors", least=1, most=100)
    sample: int = option(200, "Number of random rows whose neighbors are followed as well", least=0, most=2_000)
    seed: int = option(0, "Random seed for the sample", least=0, most=2**32 - 1)


@dataclass(frozen=True)
class SeriesRequest(Request):
    """Options for comparing the results of a run's snapshots."""

    against: str = option("first", "Snapshot that drift and neighbors are measured against", choices=("first", "last"))
