"""Go over an embedding matrix in blocks: no second copy of it is ever made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from inspector.models.placing.threads import single_threaded
from inspector.store.readers.streams import work_ahead

BLOCK_NUMEL = 1 << 22  # numbers in one block: 16 MB in float32
MEASURED_NUMEL = 1 << 20  # of rows that are measured: 4 MB, which stay in a processor's cache


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
    for place in _slices(matrix, numel):
        yield place, matrix[place].float()


def read_facts(matrix: torch.Tensor, *, numel: int = MEASURED_NUMEL) -> RowFacts:
    """Measure every row once, in several threads.

    Args:
        matrix: (rows, columns), of any floating dtype.
        numel: Numbers in one block.
    """
    norms = torch.empty(len(matrix))
    finite = torch.ones(len(matrix), dtype=torch.bool)
    zero = torch.zeros(len(matrix), dtype=torch.bool)
    total = torch.zeros(matrix.shape[1], dtype=torch.float64)

    def measure(place: slice) -> torch.Tensor:
        """Fill in what is known of some rows, and add up those that are finite."""
        block = matrix[place].float()
        lengths = torch.linalg.vector_norm(block, dim=1)
        norms[place] = lengths
        # Only a length of 0 or one that is no number leaves a doubt: squares may under- or overflow
        for number in (~torch.isfinite(lengths)).nonzero()[:, 0].tolist():
            finite[place.start + number] = bool(torch.isfinite(block[number]).all())
        short = (lengths == 0).nonzero()[:, 0]
        zero[place.start + short] = (block[short] == 0).all(dim=1)
        whole = finite[place]
        return (block if whole.all() else block[whole]).sum(dim=0)

    with single_threaded():
        for part in work_ahead(_slices(matrix, numel), measure):
            total += part.double()
    mean = (total / finite.sum().clamp_min(1)).float()
    return RowFacts(norms, finite, zero, mean)


def _slices(matrix: torch.Tensor, numel: int) -> Iterator[slice]:
    rows = max(1, numel // max(1, matrix.shape[1]))
    return (slice(start, min(start + rows, len(matrix))) for start in range(0, len(matrix), rows))


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
        centered = block - mean  # and not by |a|² - 2ab + |b|², which loses rows near the mean
        lengths = torch.linalg.vector_norm(centered, dim=1).clamp_min(1e-30)
        found[place] = (centered @ unit) / lengths
    return found.clamp(-1, 1)
