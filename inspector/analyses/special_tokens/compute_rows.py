"""Measure the rows of special tokens: how long they are, what they equal, and the output bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from inspector.errors import InspectorError, NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.vocabulary.labels import measured_rows
from inspector.models.vocabulary.rows import RowFacts
from inspector.progress import Progress

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Distance from the mean of all rows, as a share of the median row's, up to which a row is this mean: what
# resize_token_embeddings() gives a new token (mean_resizing) is 3e-5 away, and bfloat16 rounds by less than 1e-2.
AT_MEAN = 0.01
SAMPLE = 4096  # rows whose median distance from the mean stands for all
MOST_EQUAL = 10  # rows that are named


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """What the bytes hold of one token; None where they hold no such thing."""

    norm: float = math.nan
    percentile: float = math.nan  # share of all rows that are shorter, 0..100
    at_mean: bool | None = None  # the row is the mean of all rows, as a resized matrix gives it to new tokens
    equal_to: tuple[int, ...] = ()  # the first rows that are the same to the bit
    output_bias: float = math.nan


def measure_tokens(
    checkpoint: StagedCheckpoint, ids: Sequence[int], progress: Progress
) -> tuple[dict[int, MeasuredRow], int | None]:
    """Measure the rows of some tokens.

    Returns:
        Each id with a row, and how many rows the embedding matrix has; None where there is none.
    """
    try:
        matrix, facts, _ = measured_rows(checkpoint, progress)
    except NotInCheckpointError:
        return {}, None
    rows = len(matrix)
    held = [index for index in ids if index < rows]
    if not held:
        return {}, rows
    kept = facts.norms[facts.finite].sort().values
    shorter = 100 * torch.searchsorted(kept, facts.norms[held]) / max(len(kept), 1)
    bias = _output_bias(checkpoint, rows)
    near = _near_mean(matrix, facts, held)
    found = {}
    for index, share, at_mean in zip(held, shorter.tolist(), near, strict=True):
        finite = bool(facts.finite[index])
        found[index] = MeasuredRow(
            norm=float(facts.norms[index]),
            percentile=share if finite else math.nan,
            at_mean=at_mean if finite else None,
            equal_to=_equal_rows(matrix, facts, index) if finite else (),
            output_bias=math.nan if bias is None else float(bias[index]),
        )
    return found, rows


def _near_mean(matrix: torch.Tensor, facts: RowFacts, held: Sequence[int]) -> list[bool]:
    some = facts.finite.nonzero()[:, 0]
    some = some[:: max(1, len(some) // SAMPLE)]
    usual = torch.linalg.vector_norm(matrix[some].float() - facts.mean, dim=1).median()
    far = torch.linalg.vector_norm(matrix[list(held)].float() - facts.mean, dim=1)
    return ((far <= AT_MEAN * usual) & (usual > 0)).tolist()  # a matrix of one row all over has no mean to be at


def _equal_rows(matrix: torch.Tensor, facts: RowFacts, index: int) -> tuple[int, ...]:
    """The first other rows that hold the same numbers, if those are not all 0."""
    if facts.zero[index]:
        return ()
    alike = torch.isclose(facts.norms, facts.norms[index], rtol=1e-5, atol=0).nonzero()[:, 0]
    same = (other for other in alike.tolist() if other != index and torch.equal(matrix[other], matrix[index]))
    return tuple(other for other, _ in zip(same, range(MOST_EQUAL), strict=False))


def _output_bias(checkpoint: StagedCheckpoint, rows: int) -> torch.Tensor | None:
    """What the head adds to each token's score, (rows,); None where the files hold no such thing."""
    if checkpoint.structure is None:
        return None
    model, places = checkpoint.structure
    if model.get_output_embeddings() is None:
        return None
    sizes = {name: each.numel() for name, each in (*model.named_parameters(), *model.named_buffers())}
    names = [
        name
        for name, size in sizes.items()
        if size == rows and name.endswith("bias") and name in places.covered and _is_of_head(model, name)
    ]
    stored = [each for each, filled in places.filled.items() if names and names[0] in filled]
    try:
        return checkpoint.read(stored[:1])[stored[0]].flatten() if stored else None
    except InspectorError:
        return None


def _is_of_head(model: PreTrainedModel, name: str) -> bool:
    """Whether a bias is the head's own or stands alone beside it: those of other layers may be as long by chance."""
    owner = model.get_submodule(name.rpartition(".")[0])
    beside = not name.startswith(f"{model.base_model_prefix}.") and getattr(owner, "weight", None) is None
    return owner is model.get_output_embeddings() or beside
