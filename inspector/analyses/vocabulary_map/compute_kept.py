"""A map as it is kept on the disk."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Map:
    """Places of the finite rows, and how far to trust them."""

    method: str
    finite: np.ndarray  # (rows of the matrix,) of bool
    places: np.ndarray  # (finite rows, dimensions) of float32
    norms: np.ndarray  # (finite rows,) of float32
    trust: np.ndarray  # (finite rows,), 0..1; NaN where a row was not judged
    explained: tuple[float, ...]
    recall: float
    seconds: float  # that it took to make
    warnings: tuple[str, ...] = ()
    cached: bool = False

    @property
    def wholly_judged(self) -> bool:
        """Whether the trust of every row is known."""
        return bool(np.isfinite(self.trust).all())

    @property
    def kept_neighbours(self) -> float:
        """Mean trust of the judged rows."""
        judged = self.trust[np.isfinite(self.trust)]
        return float(judged.mean(dtype=np.float64)) if len(judged) else 1.0

    def arrays(self) -> dict[str, np.ndarray]:
        """For the disk."""
        told = {
            "method": self.method,
            "explained": self.explained,
            "recall": self.recall,
            "seconds": self.seconds,
            "warnings": self.warnings,
        }
        names = ("finite", "places", "norms", "trust")
        return {**{name: getattr(self, name) for name in names}, "told": np.array(json.dumps(told))}


def map_from_arrays(arrays: dict[str, np.ndarray]) -> Map:
    """A map from the disk."""
    told = json.loads(str(arrays.pop("told")))
    told |= {"explained": tuple(told["explained"]), "warnings": tuple(told["warnings"])}
    return Map(**arrays, **told, cached=True)
