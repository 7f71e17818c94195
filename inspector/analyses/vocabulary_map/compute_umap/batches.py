"""The layout of `layout.py` in batches of edges on an accelerator, by torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

PARTS = 8  # batches of an epoch: an edge's number in its row, modulo this
LIMIT = 4.0  # of one step along an axis
UNIT = 2.0**32  # steps are added as whole multiples of 1 / UNIT


def lay_out_in_batches(
    graph: csr_matrix,
    every: np.ndarray,
    start: np.ndarray,
    rates: np.ndarray,
    forces: tuple[np.ndarray, np.ndarray],
    *,
    negatives: int,
    seed: int,
    device: str,
    done: Callable[[int], None],
) -> np.ndarray:
    """Lay a pruned graph out; see `layout.lay_out`.

    Steps are added up as whole numbers, whose sum does not depend on the order: an accelerator
    adds in any order, and the same seed still gives the same places.

    Args:
        graph: Weights of edges, (rows, rows).
        every: Epochs between two uses of each edge.
        start: Places, (rows, dimensions).
        forces: Attraction and repulsion by the upper 16 bits of the squared distance.
        negatives: Random rows for each use of an edge.
        done: Told how many epochs are done.
    """
    degrees = np.diff(graph.indptr)
    heads = np.repeat(np.arange(len(degrees)), degrees)
    part_of = (np.arange(len(heads)) - graph.indptr[heads]) % PARTS
    places = torch.from_numpy(start).to(device)
    pull, push = (torch.from_numpy(force).to(device) for force in forces)
    batches = [
        _Batch(heads[chosen], graph.indices[chosen], every[chosen], device)
        for chosen in (np.flatnonzero(part_of == part) for part in range(PARTS))
    ]
    generator = torch.Generator(device=device).manual_seed(seed)
    for number, rate in enumerate(rates.tolist()):
        for batch in batches:
            head, tail = batch.take(number)
            draws = torch.randint(len(places), (len(head), negatives), generator=generator, device=device)
            step = _steps(places[head], places[tail], pull)
            step += _steps(places[head][:, None], places[draws], push).sum(dim=1)
            total = torch.zeros(places.shape, dtype=torch.int64, device=device)
            total.index_add_(0, head, (step * (rate * UNIT)).to(torch.int64))
            places += (total.double() / UNIT).float()
        done(number + 1)
    return places.cpu().numpy()


class _Batch:
    """Edges that move their heads at once."""

    def __init__(self, heads: np.ndarray, tails: np.ndarray, every: np.ndarray, device: str) -> None:
        self.heads = torch.from_numpy(heads.astype(np.int64)).to(device)
        self.tails = torch.from_numpy(tails.astype(np.int64)).to(device)
        self.every = torch.from_numpy(every).to(device)
        self.due = self.every.clone()

    def take(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Heads and tails of the edges that are due."""
        used = self.due <= number
        self.due += torch.where(used, self.every, 0)
        return self.heads[used], self.tails[used]


def _steps(here: torch.Tensor, there: torch.Tensor, force: torch.Tensor) -> torch.Tensor:
    gaps = here - there
    squared = (gaps * gaps).sum(dim=-1)
    places = (squared.view(torch.int32) >> 16).long()
    return (gaps * force[places][..., None]).clamp_(-LIMIT, LIMIT)
