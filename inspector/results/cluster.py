"""Resources of a Ray cluster, and the inspector's replicas on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """A cluster after deployment."""

    nodes: int
    cpus: float  # on all nodes
    gpus: float  # likewise
    replicas: int  # running now
    least_replicas: int  # bounds between which Ray scales
    most_replicas: int
    token: bool  # whether this program requires Ray's token authentication
