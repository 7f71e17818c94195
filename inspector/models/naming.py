"""Where a loader puts each tensor of a file: transformers' own renamings and conversions."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from transformers import PreTrainedModel
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

from inspector.errors import NotInCheckpointError
from inspector.models.transformers_patches import natural_key
from inspector.store.manifests.documents import collector_paused


@dataclass(frozen=True)
class Places:
    """Which tensors of a model the tensors of a file fill."""

    # Name in the file -> names in the model: several where a loader splits a tensor, the same for
    # several where it merges them, as it does with experts; none where it has no use for it.
    filled: Mapping[str, tuple[str, ...]]
    converted: frozenset[str]  # names in the file whose numbers are merged, split or transposed
    recipes: tuple[TensorRecipe, ...]

    @property
    def unused(self) -> list[str]:
        """Names in the file that have no place in the model."""
        return [stored for stored, names in self.filled.items() if not names]

    @cached_property
    def covered(self) -> set[str]:
        """Names in the model that the file fills."""
        return {name for names in self.filled.values() for name in names}

    @cached_property
    def stored_as(self) -> dict[str, str]:
        """Name in the model -> name in the file, of tensors that are taken as they are."""
        return {names[0]: stored for stored, names in self.filled.items() if names and stored not in self.converted}


@dataclass(slots=True)
class TensorRecipe:
    """How a loader makes one tensor of a model, or the several of one conversion."""

    place: str  # name in the model, the first of several
    converter: WeightConverter | None  # None: the stored tensor is taken as it is
    sources: list[tuple[str, str]]  # name in the file, and the pattern of the converter that it fits

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tensors that it makes."""
        return _targets(self.place, self.converter)

    @property
    def repeated(self) -> list[str]:
        """Names in the file of what it makes: stored, too, beside what it is made of."""
        return [name for name, _ in self.sources if name not in self.parts]

    @property
    def parts(self) -> list[str]:
        """Names in the file of what it is made of."""
        patterns = self.converter.source_patterns if self.converter else [pattern for _, pattern in self.sources]
        return [name for name, pattern in self.sources if pattern in patterns]

    def make(
        self, model: PreTrainedModel, read: Callable[[str], torch.Tensor], dtype: torch.dtype
    ) -> dict[str, torch.Tensor]:
        """Make the tensors.

        Args:
            read: Gives a tensor of the file by its name.
            dtype: In which what is read is taken.

        Returns:
            Name in the model -> tensor.
        """
        if self.converter is None:
            return {self.place: read(self.sources[0][0]).to(dtype)}
        converter = copy.deepcopy(self.converter)
        for name, pattern in self.sources:
            converter.add_tensor(self.place, name, pattern, lambda name=name: read(name).to(dtype))  # type: ignore[arg-type]  # a callable is what it calls itself
        made = converter.convert(self.place, model=model, config=model.config)
        return {name: each[0] if isinstance(each, list) else each for name, each in made.items()}


@collector_paused()
def find_places(model: PreTrainedModel, names: Iterable[str]) -> Places:
    """Say which parameters and buffers of a model each stored tensor fills, and how a loader makes them.

    Args:
        model: Of the class that the file is loaded as; it may be on the meta device.
    """
    filled: dict[str, tuple[str, ...]] = {}
    recipes: dict[str, TensorRecipe] = {}
    converted = set()
    for name, place, pattern, converter in _placed(model, names):
        filled[name] = _targets(place, converter) if place else ()
        if place is not None:
            recipe = recipes.setdefault(place, TensorRecipe(place, converter, []))
            recipe.sources.append((name, pattern or name))
            if converter:
                recipe.converter = converter
                converted.add(name)
    return Places(filled, frozenset(converted), tuple(recipes.values()))


def merge(model: PreTrainedModel, places: Places, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor] | None:
    """Make what a model's loader would make of a file's tensors, by their names in the model.

    Args:
        model: Of the class; it may be on the meta device.
        places: Of that class.
        state: Name in the file -> tensor.

    Returns:
        What the model's class loads in the place of `state`; None where it would make something else of it, or
        where tensors of several dtypes become one, or what is made is stored, too.
    """
    made: dict[str, torch.Tensor] = {}
    for recipe in places.recipes:
        dtypes = {state[name].dtype for name, _ in recipe.sources}
        if len(dtypes) > 1 or recipe.repeated:
            return None
        made |= recipe.make(model, state.__getitem__, dtypes.pop())
    again = find_places(model, made)
    return made if all(names == (name,) for name, names in again.filled.items()) and not again.converted else None


def _targets(place: str, converter: WeightConverter | None) -> tuple[str, ...]:
    patterns = converter.target_patterns if converter else [place]
    return tuple(place.replace(patterns[0], each) for each in patterns)


def _placed(
    model: PreTrainedModel, names: Iterable[str]
) -> Iterator[tuple[str, str | None, str | None, WeightConverter | None]]:
    """Follow a loader.

    Yields:
        Name in the file, the first name in the model that it fills, and the pattern and the
        conversion that it takes part in; None where there is no such.
    """
    transforms = get_model_conversion_mapping(model)
    renamings = [each for each in transforms if isinstance(each, WeightRenaming)]
    converters = [each for each in transforms if isinstance(each, WeightConverter)]
    by_pattern = {source: each for each in converters for source in each.source_patterns}
    held = model.state_dict()
    base = model.base_model_prefix
    for name in sorted(names, key=natural_key):  # some renamings count on this order
        place, pattern = rename_source_key(name, renamings, converters, base, held)
        if place not in held and name in held:
            place, pattern = rename_source_key(name, [], [], base, held)
        yield name, place if place in held else None, pattern, by_pattern[pattern] if pattern else None


def embedding_matrix(model: PreTrainedModel) -> torch.Tensor | None:
    """The matrix that looks tokens up, (vocab, d_model); None where transformers names none, as for CLIP."""
    try:
        weight = getattr(model.get_input_embeddings(), "weight", None)
    except (AttributeError, NotImplementedError):
        return None
    return weight if isinstance(weight, torch.Tensor) else None


def input_embedding(model: PreTrainedModel) -> torch.Tensor:
    """The parameter that looks tokens up, (vocab, d_model).

    Raises:
        NotInCheckpointError: If transformers names none.
    """
    weight = embedding_matrix(model)
    if weight is None:
        raise NotInCheckpointError(
            f"transformers does not report the embedding matrix of {type(model).__name__}, so this tool cannot read "
            "its states as tokens. You can still inspect the weights."
        )
    return weight


def embedding_names(model: PreTrainedModel) -> list[str]:
    """Every name of the matrix that looks tokens up, the tied ones too; none where it has none."""
    weight = embedding_matrix(model)
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
