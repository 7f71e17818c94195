"""Exact nearest neighbours by blocked matrix products, and how many of them a map keeps."""

from __future__ import annotations

import torch

from inspector.analyses import Progress

BLOCK_NUMEL = 1 << 25  # numbers in one block of distances: 128 MB in float32
JUDGED = 3_000  # rows whose neighbours are compared when a vocabulary is larger than this


def nearest(
    matrix: torch.Tensor,
    queries: torch.Tensor,
    k: int,
    *,
    metric: str,
    progress: Progress | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the k nearest rows of each query row, itself left out.

    Args:
        matrix: (rows, columns), finite.
        queries: Row numbers, (queries,).
        k: 1 <= k < rows.
        metric: "cosine" or "euclidean".
        progress: Told the share of queries done.

    Returns:
        Row numbers and distances, both (queries, k), nearest first. The cosine distance is
        1 - cosine, in 0..2; a zero row is at distance 1 from every other.
    """
    if metric == "cosine":
        matrix = torch.nn.functional.normalize(matrix, dim=1)
    squares = (matrix * matrix).sum(dim=1)
    indices, distances = [], []
    for part in queries.split(max(1, BLOCK_NUMEL // len(matrix))):
        block = matrix[part] @ matrix.T
        if metric == "cosine":
            block = block.neg_().add_(1).clamp_(0, 2)
        else:
            block = block.mul_(-2).add_(squares).add_(squares[part, None]).clamp_(min=0).sqrt_()
        block[torch.arange(len(part)), part] = torch.inf
        found = block.topk(k, largest=False)
        indices.append(found.indices)
        distances.append(found.values)
        if progress:
            done = sum(map(len, indices)) / len(queries)
            progress(done, f"Finding neighbours: {done:.0%}")
    return torch.cat(indices), torch.cat(distances)


def kept_neighbours(
    matrix: torch.Tensor, places: torch.Tensor, *, k: int = 15, metric: str = "cosine"
) -> float:
    """Share of the true k nearest neighbours that are still among the k nearest on a map.

    Args:
        matrix: The original vectors, (rows, columns).
        places: Their places on the map, (rows, 2 or 3).
        k: Neighbours compared; at most rows - 1 are.
        metric: Of the original space; the map is read by eye, so there it is Euclidean.

    Returns:
        The mean over all rows, or over 3,000 rows drawn with a fixed seed from a larger
        vocabulary, 0..1.
    """
    rows = len(matrix)
    k = min(k, rows - 1)
    if k < 1:
        return 1.0
    generator = torch.Generator().manual_seed(0)
    judged = torch.randperm(rows, generator=generator)[:JUDGED]
    truth, _ = nearest(matrix, judged, k, metric=metric)
    seen, _ = nearest(places, judged, k, metric="euclidean")
    shared = (truth[:, :, None] == seen[:, None, :]).any(dim=2)
    return shared.float().mean().item()
