"""Build a class as it is loaded from a checkpoint, without its numbers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import torch
from transformers import PreTrainedModel

from inspector.models import build
from inspector.models.checkpoint import StagedCheckpoint

BLOCK = 1 << 20  # numbers compared at once
MANY_NAMES = 5_000  # in a file: to load what a loader would make of them takes less time


def build_outline(
    checkpoint: StagedCheckpoint,
    model_class: type[PreTrainedModel],
    *,
    dtype: torch.dtype | None = None,
    compare: bool = True,
    many: int = MANY_NAMES,
    initialize: Callable[[PreTrainedModel], None] | None = None,
) -> tuple[PreTrainedModel, frozenset[str]]:
    """Build a model class as `build.build_model` does, without its numbers.

    Names, shapes, dtypes, ties and storages are those of the loaded model. Only where a class
    ties two tensors that the file holds both are those two read, to see whether they are equal.

    Args:
        checkpoint: What is loaded.
        model_class: What it is loaded as.
        dtype: Of the parameters; None: as they are stored.
        compare: False: nothing is read, and what the file holds twice counts as two.
        many: Names in the file, from which on the loader is given what it would make of them.
        initialize: What is done to the model once the file is loaded; None: nothing.

    Returns:
        The model on the meta device, and the names of parameters that the file does not hold.

    Raises:
        CheckpointError: As `build.build_model`, and if codes cannot be read as numbers.
    """
    build.quiet()
    built = partial(
        build.build_model,
        model_class,
        checkpoint.config,
        name=checkpoint.name,
        dtype=dtype or build.stored_dtype(checkpoint.outlines),
        same=partial(_same_numbers, checkpoint) if compare else lambda *_: False,
        initialize=initialize,
    )
    if len(checkpoint.outlines) > many:
        with suppress(Exception):  # the loader itself says below what is wrong, by the names in the file
            if made := checkpoint.merged(model_class):
                return built(made)
    return built(checkpoint.outlines)


def _same_numbers(checkpoint: StagedCheckpoint, model: PreTrainedModel, first: str, second: str) -> bool:
    """Whether the file holds equal numbers for two parameters of a class on the meta device.

    Equal as `torch.equal` says of the loaded parameters, in their dtype. Only these two are read,
    and no further than to the first difference.
    """
    one, other = (model.get_parameter_or_buffer(name) for name in (first, second))
    if one.shape != other.shape:
        return False
    held, named = checkpoint.places(model).stored_as, [*model.named_parameters(remove_duplicate=False)]
    # Tied to what the file holds under another name, a parameter has that one's numbers.
    names = [next((held[n] for n, each in named if each is wanted and n in held), None) for wanted in (one, other)]
    if None in names:
        return False
    pairs = zip(*(checkpoint.numbers(name or "", count=BLOCK) for name in names), strict=True)
    return all(torch.equal(a.to(one.dtype), b.to(other.dtype)) for a, b in pairs)
