"""The question: which tokens lie together on a map?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from inspector.request import Request, option

SEEDS = 2**32


@dataclass(frozen=True)
class ProjectRequest(Request):
    """Options of `project`; neighbors, seed and stability matter for UMAP alone."""

    verb = "project"

    method: str = option(
        "pca",
        "pca: the directions of largest variance, at once; umap: keeps neighbors together, takes "
        "longer",
        label="Map", choices=("pca", "umap"),
    )  # fmt: skip
    dimensions: int = option(2, "Dimensions of the map", least=2, most=3)
    neighbors: int = option(
        15,
        "UMAP's n_neighbors: small shows detail, large the whole",
        flag="--neighbours", least=2, most=200,
    )  # fmt: skip
    metric: str = option(
        "cosine", "How true neighbors are measured", choices=("cosine", "euclidean")
    )
    seed: int = option(0, "Seed of UMAP's random choices", least=0, most=SEEDS - 1)
    stability: bool = option(
        False,
        "Compute the UMAP again with the next seed, and measure how many neighbors stay together; "
        "takes as long again",
    )
    trust: bool = option(False, "Judge every row, not a sample of a large vocabulary")

    def steps(self) -> tuple[ProjectRequest, ...]:
        """What to show meanwhile, quickest first: a PCA, the map, the map judged."""
        plain = ProjectRequest(dimensions=self.dimensions)
        return tuple(dict.fromkeys((plain, replace(self, stability=False, trust=False), self)))
