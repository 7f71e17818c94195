"""What a Ray cluster has, and what of the inspector runs on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """A cluster after the inspector was put on it."""

    nodes: int
    cpus: float  # of all nodes
    gpus: float  # likewise
    replicas: int  # that run now
    least_replicas: int  # between which Ray scales
    most_replicas: int
    token: bool  # whether this program demands Ray's token authentication
