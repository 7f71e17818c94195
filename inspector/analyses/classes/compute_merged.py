"""Give other classes what a loader has merged for the first: of 45,000 experts' tensors, a hundred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import (
    PrefixChange,
    WeightConverter,
    WeightRenaming,
    WeightTransform,
    rename_source_key,
)

from inspector.errors import CheckpointError
from inspector.models.build import build_model
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.weightless.outline import build_outline

STATELESS = (WeightRenaming, WeightConverter, PrefixChange)  # what they make of a name depends on no other name


@dataclass(frozen=True, slots=True)
class Merged:
    """The tensors of a file, those that a loader merges as what it makes of them."""

    state: dict[str, torch.Tensor]  # on the meta device
    rules: list[Any]  # of the loader: a class with others may merge otherwise


def merge(checkpoint: StagedCheckpoint, model: PreTrainedModel, missing: frozenset[str]) -> Merged | None:
    """Take tensors that a loader merges as those of the model; None where none can be taken so.

    Args:
        model: That the file was loaded as.
        missing: Names of its parameters that the file does not hold.
    """
    rules = get_model_conversion_mapping(model)
    if not any(isinstance(each, WeightConverter) for each in rules) or any(
        type(each) not in STATELESS for each in rules
    ):
        return None
    sources: dict[tuple[str, ...], list[str]] = {}
    places = checkpoint.places(model)
    for stored in places.converted:
        sources.setdefault(places.filled[stored], []).append(stored)
    held, state = model.state_dict(), dict(checkpoint.outlines)
    for names, stored in sources.items():
        if len(stored) <= len(names):
            continue
        whole = _whole_names(rules, stored[0])
        if not whole or not missing.isdisjoint(names):
            return None
        for each in stored:
            del state[each]
        state |= {name: held[each].to("meta") for name, each in zip(whole, names, strict=True)}
    return Merged(state, _described(rules)) if len(state) < len(checkpoint.outlines) else None


def missing_of(
    checkpoint: StagedCheckpoint, model_class: type[PreTrainedModel], merged: Merged | None
) -> frozenset[str]:
    """Names of a class's parameters that the file does not hold.

    Raises:
        CheckpointError: As `build_outline`.
    """
    if merged is not None:
        try:
            model, missing = build_model(
                model_class, checkpoint.config, merged.state, name=checkpoint.name, same=lambda *_: False
            )
            if _described(get_model_conversion_mapping(model)) == merged.rules:
                return missing
        except CheckpointError:  # which counts and names tensors: let it be those of the file
            pass
    return build_outline(checkpoint, model_class)[1]


def _whole_names(rules: Sequence[WeightTransform], stored: str) -> tuple[str, ...]:
    """Names of what a loader merges, before it fits them to a class; none where it would rename these again."""
    renamings = [each for each in rules if isinstance(each, WeightRenaming)]
    converters = [each for each in rules if isinstance(each, WeightConverter)]
    name, pattern = rename_source_key(stored, renamings, converters)
    (converter,) = (each for each in converters if pattern in each.source_patterns)
    whole = tuple(name.replace(converter.target_patterns[0], each) for each in converter.target_patterns)
    kept = all(rename_source_key(each, renamings, converters) == (each, None) for each in whole)
    return whole if kept else ()


def _described(rules: Sequence[WeightTransform]) -> list[Any]:
    return [
        (
            type(each),
            each.source_patterns,
            each.target_patterns,
            each.scope_prefix,
            each.base_model_prefix,
            [(type(step), vars(step)) for step in getattr(each, "operations", ())],
        )
        for each in rules
    ]
