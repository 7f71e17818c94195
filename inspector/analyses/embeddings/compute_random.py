"""Tell a matrix that was never trained: its rows are independent random numbers."""

from __future__ import annotations

import torch

SAMPLE = 4096  # rows that are looked at


def spread_if_random(matrix: torch.Tensor, usable: torch.Tensor) -> float | None:
    """Whether rows cannot be told from independent random numbers of one variance.

    Then the mean squared cosine of two rows is 1 / d_model, and norms vary by no more than the
    share 1 / sqrt(2 d_model), both but for chance. Trained matrices are many times above.

    Returns:
        The numbers' standard deviation, or None if the rows are not like that.
    """
    chosen = usable.nonzero()[:, 0]
    generator = torch.Generator().manual_seed(0)
    chosen = chosen[torch.randperm(len(chosen), generator=generator)[:SAMPLE]]
    rows = matrix[chosen].float()
    count, columns = rows.shape
    lengths = torch.linalg.vector_norm(rows, dim=1)
    units = rows / lengths[:, None]
    pairs = count * (count - 1)
    squared = ((units.T @ units).square().sum() - count) / pairs
    isotropy = float(squared) * columns
    spread = float(lengths.std() / lengths.mean()) * (2 * columns) ** 0.5
    if isotropy > 1.1 + 4 * (4 / pairs) ** 0.5 or spread > 1.1 + 4 / (2 * count) ** 0.5:
        return None
    return float(rows.std())
