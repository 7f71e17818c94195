"""Go over an embedding matrix in blocks: no second copy of it is ever made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

BLOCK_NUMEL = 1 << 22  # numbers in one block: 16 MB in float32


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What one pass over the rows tells."""

    norms: torch.Tensor  # (rows,), float32; NaN or infinite where the row is
    finite: torch.Tensor  # (rows,) of bool
    zero: torch.Tensor  # (rows,) of bool: every number is 0
    mean: torch.Tensor  # of the finite rows, (columns,), float32


def blocks(matrix: torch.Tensor, *, numel: int = BLOCK_NUMEL) -> Iterator[tuple[slice, torch.Tensor]]:
    """Cut a matrix of any dtype into blocks of rows in float32.

    Args:
        matrix: (rows, columns).
        numel: Numbers in one block.

    Yields:
        Which rows, and the block; where the matrix is float32 itself, a view of it.
    """
    rows = max(1, numel // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), rows):
        part = matrix[start : start + rows]
        yield slice(start, start + len(part)), part.float()


def read_facts(matrix: torch.Tensor, *, numel: int = BLOCK_NUMEL) -> RowFacts:
    """Measure every row once.

    Args:
        matrix: (rows, columns), of any floating dtype.
        numel: Numbers in one block.
    """
    norms = torch.empty(len(matrix))
    finite = torch.ones(len(matrix), dtype=torch.bool)
    zero = torch.zeros(len(matrix), dtype=torch.bool)
    total = torch.zeros(matrix.shape[1], dtype=torch.float64)
    for place, block in blocks(matrix, numel=numel):
        lengths = torch.linalg.vector_norm(block, dim=1)
        norms[place] = lengths
        # Only a length of 0 or one that is no number leaves a doubt: squares may under- or overflow
        for number in (~torch.isfinite(lengths)).nonzero()[:, 0].tolist():
            finite[place.start + number] = bool(torch.isfinite(block[number]).all())
        short = (lengths == 0).nonzero()[:, 0]
        zero[place.start + short] = (block[short] == 0).all(dim=1)
        whole = finite[place]
        total += (block if whole.all() else block[whole]).sum(dim=0).double()
    mean = (total / finite.sum().clamp_min(1)).float()
    return RowFacts(norms, finite, zero, mean)


def cosines(matrix: torch.Tensor, mean: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Compare every row, a mean taken off, with one vector.

    Args:
        matrix: (rows, columns).
        mean: What is taken off every row, (columns,).
        vector: What they are compared with, (columns,).

    Returns:
        Cosines, (rows,), -1..1; 0 for a row that equals the mean.
    """
    found = torch.empty(len(matrix))
    unit = vector / torch.linalg.vector_norm(vector).clamp_min(1e-30)
    for place, block in blocks(matrix):
        centerd = block - mean  # and not by |a|² - 2ab + |b|², which loses rows near the mean
        lengths = torch.linalg.vector_norm(centerd, dim=1).clamp_min(1e-30)
        found[place] = (centerd @ unit) / lengths
    return found.clamp(-1, 1)
