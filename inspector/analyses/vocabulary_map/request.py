"""The question: which tokens lie together on a map?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from inspector.errors import RequestError
from inspector.request import Request, defaults, option

SEEDS = 2**32
OURS, UMAP_LEARN = "inspector", "umap-learn"
THEIRS = ("min_dist", "spread", "densmap")  # options of umap-learn


@dataclass(frozen=True)
class ProjectRequest(Request):
    """Options of `project`; neighbors, seed and stability apply only to UMAP.

    What is said of umap-learn is refused with our own implementation, which has a minimum distance
    of 0 and a spread of 1.
    """

    verb = "project"

    method: str = option(
        "pca",
        "pca: the directions of largest variance, computed at once; umap: keeps neighbors together, takes longer",
        label="Map",
        choices=("pca", "umap"),
    )
    dimensions: int = option(2, "Dimensions of the map", least=2, most=3)
    neighbors: int = option(
        15,
        "UMAP's n_neighbors: small values show detail, large values the overall structure",
        flag="--neighbours",
        least=2,
        most=200,
    )
    metric: str = option("cosine", "How true neighbors are measured", choices=("cosine", "euclidean"))
    seed: int = option(0, "Random seed for UMAP", least=0, most=SEEDS - 1)
    stability: bool = option(
        False,
        "Compute the UMAP again with the next seed, and measure how many neighbors stay together; takes twice as long",
    )
    trust: bool = option(False, "Judge every row of a large vocabulary, not just a sample")
    implementation: str = option(
        OURS, "UMAP implementation: the inspector's own, or umap-learn, which takes longer", choices=(OURS, UMAP_LEARN)
    )
    min_dist: float = option(
        0.1,
        "umap-learn's min_dist: how close points may lie on the map",
        label="Minimum distance",
        least=0,
        most=10,
        step=0.05,
    )
    spread: float = option(1.0, "umap-learn's spread: how far apart clusters lie", least=0.1, most=10, step=0.1)
    densmap: bool = option(False, "umap-learn's densMAP: also keeps local densities", label="densMAP")

    def __post_init__(self) -> None:
        """Refuse options that do not fit together.

        Raises:
            RequestError: If umap-learn is to make a PCA, or our UMAP is given its options.
        """
        super().__post_init__()
        if self.implementation == UMAP_LEARN and self.method != "umap":
            raise RequestError("umap-learn computes only UMAPs: choose umap as the map.", option="method")
        if self.implementation == OURS and {name: getattr(self, name) for name in THEIRS} != _defaults():
            raise RequestError(
                "Minimum distance, spread and densMAP are options of umap-learn: choose it as the implementation.",
                option="implementation",
            )
        if self.min_dist > self.spread:
            raise RequestError(
                f"Minimum distance must be at most the spread, {self.spread:g}, not {self.min_dist:g}.",
                option="min_dist",
            )

    @property
    def ours(self) -> ProjectRequest:
        """The same map by our own implementation."""
        return replace(self, implementation=OURS, **_defaults())

    def steps(self) -> tuple[ProjectRequest, ...]:
        """What to show meanwhile, quickest first: a PCA, our UMAP, the map, the map judged."""
        plain = ProjectRequest(dimensions=self.dimensions)
        ours = (self.ours,) if self.implementation == UMAP_LEARN else ()
        unjudged = replace(self, stability=False, trust=False)
        return tuple(dict.fromkeys((plain, *ours, unjudged, self)))


def _defaults() -> dict[str, Any]:
    return {name: defaults(ProjectRequest)[name] for name in THEIRS}
