"""Where a loader puts each tensor of a file: transformers' own renamings and conversions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, dot_natural_key, rename_source_key


@dataclass(frozen=True)
class Places:
    """Which tensors of a model the tensors of a file fill."""

    # Name in the file -> names in the model: several where a loader splits a tensor, the same for
    # several where it merges them, as it does with experts; none where it has no use for it.
    filled: Mapping[str, tuple[str, ...]]
    converted: frozenset[str]  # names in the file whose numbers are merged, split or transposed

    @property
    def unused(self) -> list[str]:
        """Names in the file that have no place in the model."""
        return [stored for stored, names in self.filled.items() if not names]

    @property
    def covered(self) -> set[str]:
        """Names in the model that the file fills."""
        return {name for names in self.filled.values() for name in names}

    @cached_property
    def stored_as(self) -> dict[str, str]:
        """Name in the model -> name in the file, of tensors that are taken as they are."""
        return {names[0]: stored for stored, names in self.filled.items() if names and stored not in self.converted}


def find_places(model: PreTrainedModel, names: Iterable[str]) -> Places:
    """Say which parameters and buffers of a model each stored tensor fills.

    Args:
        model: Of the class that the file is loaded as; it may be on the meta device.
        names: Of the file's tensors.
    """
    transforms = get_model_conversion_mapping(model)
    renamings = [each for each in transforms if isinstance(each, WeightRenaming)]
    converters = [each for each in transforms if isinstance(each, WeightConverter)]
    targets = {source: each.target_patterns for each in converters for source in each.source_patterns}
    held = model.state_dict()
    base = model.base_model_prefix
    filled: dict[str, tuple[str, ...]] = {}
    converted = set()
    for name in sorted(names, key=dot_natural_key):  # some renamings count on this order
        place, pattern = rename_source_key(name, renamings, converters, base, held)
        if place not in held and name in held:
            place, pattern = rename_source_key(name, [], [], base, held)
        patterns = targets[pattern] if pattern else [place]
        made = tuple(place.replace(patterns[0], each) for each in patterns)
        filled[name] = made if place in held else ()
        if pattern and place in held:
            converted.add(name)
    return Places(filled, frozenset(converted))


def embedding_names(model: PreTrainedModel) -> list[str]:
    """Every name of the matrix that looks tokens up, the tied ones too; none where it has none."""
    try:
        weight = getattr(model.get_input_embeddings(), "weight", None)
    except (AttributeError, NotImplementedError):  # no tokens are looked up
        return []
    named = model.named_parameters(remove_duplicate=False)
    return [name for name, parameter in named if parameter is weight]


def ties_stored(model: PreTrainedModel, places: Places) -> bool:
    """Whether the model has one parameter under two names that the file holds both."""
    named = model.named_parameters(remove_duplicate=False)
    stored = [id(parameter) for name, parameter in named if name in places.covered]
    return len(stored) > len(set(stored))


def count_parameters(model: PreTrainedModel, places: Places) -> tuple[int, int] | None:
    """How many parameters a model lists by name, and how many there are with ties counted once.

    None where the file lacks what no loader computes: then only the file can be counted.
    """
    named = dict(model.named_parameters(remove_duplicate=False))
    computed = model._keys_to_ignore_on_load_missing or ()
    filled = {
        id(parameter)
        for name, parameter in named.items()
        if name in places.covered or any(re.search(each, name) for each in computed)
    }
    if any(id(parameter) not in filled for parameter in named.values()):
        return None
    listed = sum(parameter.numel() for parameter in named.values())
    return listed, sum(parameter.numel() for parameter in model.parameters())
