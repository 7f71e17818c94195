"""Count parameters by name, and once for each storage."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from inspector.models.memory import covered_nbytes, overlaps


def count(tensors: Mapping[str, torch.Tensor]) -> tuple[int, int]:
    """Numbers and bytes, every name counted."""
    return sum(t.numel() for t in tensors.values()), sum(t.nbytes for t in tensors.values())


def count_once(tensors: Mapping[str, torch.Tensor]) -> tuple[int, int]:
    """Numbers and bytes, what is in common counted once."""
    groups = overlaps(tensors.items())
    shared = {block.name for group in groups for block in group}
    numbers, nbytes = count({name: t for name, t in tensors.items() if name not in shared})
    for group in groups:
        covered = covered_nbytes(group)
        nbytes += covered
        # Views of other dtypes count as the numbers of the widest.
        numbers += covered // max(block.itemsize for block in group)
    return numbers, nbytes
