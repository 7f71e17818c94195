"""Estimate how long a streamed pass takes, before it begins: a matrix is timed, and the rest follows by its bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from inspector.models.placing.device import wait
from inspector.models.placing.placement import shown_size
from inspector.settings import MB
from inspector.store.readers.levels import read_setting

if TYPE_CHECKING:
    from inspector.models.naming import TensorRecipe
    from inspector.models.placing.routing import Experts
    from inspector.models.placing.stream import Stream

TRIED = 2  # matrices: the first pays for what torch sets up lazily
SAMPLE_NBYTES = 256 * MB


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long the blocks of one pass take."""

    seconds: float
    basis: str  # one sentence: what was measured


def estimate(stream: Stream, tokens: int, *, most_nbytes: int = SAMPLE_NBYTES) -> Estimate | None:
    """Read a matrix of the first block and multiply tokens by it, and say how long all blocks take.

    A block's time is nearly that of its matrices, which is that of their bytes: they are read once, and each
    token is multiplied by each of them once. What attention adds for long texts is not counted.

    Args:
        tokens: In all texts of the pass.
        most_nbytes: Of the matrix that is read, where the block has smaller ones.

    Returns:
        None where a block has no matrix.
    """
    tried = _choose(stream, most_nbytes)
    taken = [_time(stream, recipe, tokens) for recipe in tried]
    if not taken:
        return None
    nbytes, seconds = _nbytes(stream, tried[-1]), taken[-1]
    total = sum(nbytes_of(stream, block, tokens) for block in stream.blocks) * rounds(stream)
    basis = (
        f"Measured here: reading {tried[-1].place} ({shown_size(nbytes)}) and multiplying {tokens} tokens by it took "
        f"{seconds:.2g} s. The estimate scales this to {shown_size(total)} in total. Longer texts take longer, and "
        "weights in the system's file cache less."
    )
    return Estimate(seconds * total / max(1, nbytes), basis)


def _choose(stream: Stream, most_nbytes: int) -> list[TensorRecipe]:
    """Matrices of the first block that are tried, the one that counts last."""
    recipes = stream.needed(next(iter(stream.blocks.values())))
    matrices = [each for each in recipes if len(each.names) == 1 and stream.held[each.place].dim() == 2]
    matrices.sort(key=lambda each: _nbytes(stream, each))
    fit = [each for each in matrices if _nbytes(stream, each) <= most_nbytes]
    return fit[-TRIED:] or matrices[:1]


def _time(stream: Stream, recipe: TensorRecipe, tokens: int) -> float:
    """Seconds that it takes to make a matrix and to multiply tokens by it."""
    began = time.monotonic()
    (matrix,) = stream.make(recipe.names).values()
    with torch.inference_mode():
        torch.nn.functional.linear(matrix.new_ones(tokens, matrix.shape[1]), matrix)
    wait(stream.device)
    return time.monotonic() - began


def rounds(stream: Stream) -> int:
    """How often a pass runs each block: ALBERT's layers share them."""
    config = stream.model.config
    shared = getattr(config, "num_hidden_groups", None)
    return read_setting(config, "num_hidden_layers").value // shared if shared else 1


def nbytes_of(stream: Stream, block: str, tokens: int) -> int:
    """What is read of the files for a block: of a mixture as many experts as tokens can be routed to."""
    read = sum(_nbytes(stream, recipe) for recipe in stream.needed(stream.blocks[block]))
    for experts in stream.mixtures:
        if experts.path.startswith(f"{block}."):
            whole = sum(_nbytes(stream, recipe) for recipe in experts.recipes)
            read += whole * min(experts.count, tokens * _routed(stream, experts)) // experts.count
    return read


def _routed(stream: Stream, experts: Experts) -> int:
    """Experts that a token is routed to; all of them where the config does not say."""
    return getattr(stream.model.config, "num_experts_per_tok", None) or experts.count


def _nbytes(stream: Stream, recipe: TensorRecipe) -> int:
    """Bytes of the files that a tensor of the model is made of."""
    reader = stream.checkpoint.reader
    return sum(part.nbytes for name, _ in recipe.sources for part in reader.stored(name))
