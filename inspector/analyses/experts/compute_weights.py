"""Measure every expert of a mixture: norms, experts of zeros, and experts that hold the same numbers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from transformers import PreTrainedModel
from transformers.core_model_loading import Concatenate, MergeModulelist, Transpose

from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.incomplete import NUMBER
from inspector.models.naming import Places, TensorRecipe
from inspector.models.weightless.mixtures import Mixture

# Relative difference of norms up to which two experts are compared number by number: more than the order of a sum in
# float64 changes, and less than thousands of experts have by chance.
CLOSE = 1e-12


@dataclass(frozen=True, slots=True)
class ExpertPart:
    """A tensor that is one expert's, or a row of one that holds all experts."""

    name: str  # in the files; of what a loader makes, in the model
    row: int | None = None  # None: all of it
    made: bool = False  # what a loader makes of tensors that it splits, or turns


@dataclass(frozen=True, slots=True)
class MeasuredExpert:
    """What the files hold of one expert."""

    parts: tuple[ExpertPart, ...]
    norm: float = math.nan  # of all its numbers; NaN if they are not all in the files, or not as numbers
    finite: bool = True

    @property
    def unknown(self) -> bool:
        """Whether the files do not hold all of it as numbers."""
        return self.finite and math.isnan(self.norm)

    @property
    def known(self) -> bool:
        """Whether all its numbers could be read, and are numbers."""
        return self.finite and not math.isnan(self.norm)


class ExpertWeights:
    """Reads what mixtures consist of: one expert at a time where each has tensors of its own."""

    def __init__(self, checkpoint: StagedCheckpoint, model: PreTrainedModel, places: Places) -> None:
        self.unreadable: dict[str, str] = {}  # name in the file -> why
        self._checkpoint, self._model = checkpoint, model
        self._by_place = {name: recipe for recipe in places.recipes for name in recipe.names}
        # Of the block that is measured: name, and whether it is made -> numbers; None where they are not there
        self._fused: dict[tuple[str, bool], torch.Tensor | None] = {}

    def measure(self, mixture: Mixture) -> list[MeasuredExpert]:
        """Measure each expert of a block."""
        self._fused.clear()
        parts = self._single(mixture) if mixture.single else self._stacked(mixture)
        return [self._measured(each) for each in parts]

    def norm(self, names: Sequence[str]) -> float:
        """The norm of some parameters of the model as one vector; NaN where the files do not hold all of them."""
        return self._measured(self._whole(names)).norm

    def rows(self, name: str, count: int) -> torch.Tensor | None:
        """A parameter or buffer with a row for each expert, (count, …); None where the files do not hold it."""
        recipe = self._by_place.get(name)
        parts = (ExpertPart(name, made=True),) if recipe and recipe.converter else self._whole([name]) if name else ()
        read = self._read(parts) if len(parts) == 1 else None
        return read[0].double().reshape(count, -1) if read and not read[0].numel() % count else None

    def same(self, one: MeasuredExpert, other: MeasuredExpert) -> bool:
        """Whether two experts hold the same numbers."""
        if len(one.parts) != len(other.parts) or not math.isclose(one.norm, other.norm, rel_tol=CLOSE):
            return False
        compared = {(part.name, part.made) for part in (*one.parts, *other.parts)}
        self._fused = {name: each for name, each in self._fused.items() if name in compared}
        first, second = self._read(one.parts), self._read(other.parts)
        return bool(first and second) and all(map(torch.equal, first or (), second or ()))

    def _measured(self, parts: tuple[ExpertPart, ...]) -> MeasuredExpert:
        read = self._read(parts)
        if not read or not all(each.is_floating_point() for each in read):
            return MeasuredExpert(parts)
        norm = math.hypot(*(float(torch.linalg.vector_norm(each, dtype=torch.float64)) for each in read))
        return MeasuredExpert(parts, norm, math.isfinite(norm))

    def _read(self, parts: Sequence[ExpertPart]) -> list[torch.Tensor] | None:
        """The numbers of some parts; None where one cannot be read."""
        found = []
        for part in parts:
            whole = self._tensor(part)
            if whole is None:
                return None
            found.append(whole if part.row is None else whole[part.row])
        return found

    def _tensor(self, part: ExpertPart) -> torch.Tensor | None:
        key = part.name, part.made
        if key in self._fused:
            return self._fused[key]
        read = self._make(part.name) if part.made else self._stored([part.name]).get(part.name)
        if part.row is not None:
            self._fused[key] = read
        return read

    def _stored(self, names: Sequence[str]) -> dict[str, torch.Tensor]:
        """Tensors of the files, without those that cannot be read."""
        found: dict[str, torch.Tensor] = {}
        for name in names:
            if name in self.unreadable:
                continue
            try:
                found |= self._checkpoint.read([name])
            except InspectorError as error:
                self.unreadable[name] = str(error)
        return found

    def _make(self, name: str) -> torch.Tensor | None:
        """A parameter of the model, made as a loader makes it; None where the files do not hold all of it."""
        recipe = self._by_place[name]
        stored = self._stored(recipe.parts)
        if recipe.repeated or len(stored) < len(recipe.parts):
            return None
        dtype = reduce(torch.promote_types, (each.dtype for each in stored.values()))
        try:
            made = recipe.make(self._model, stored.__getitem__, dtype)
        except (RuntimeError, ValueError, LookupError):  # too few or too many, or of other shapes
            return None
        held = self._model.state_dict()
        whole = all(each in made and made[each].shape == held[each].shape for each in recipe.names)
        return made[name] if whole else None

    def _recipes(self, names: Sequence[str]) -> list[TensorRecipe] | None:
        """What makes some parameters of the model; None where the files lack one."""
        made = [self._by_place.get(name) for name in names]
        recipes = {id(each): each for each in made if each}
        return None if None in made else list(recipes.values())

    def _whole(self, names: Sequence[str]) -> tuple[ExpertPart, ...]:
        """What the files hold of some parameters; () where they lack one."""
        found: list[ExpertPart] = []
        for recipe in self._recipes(names) or ():
            wanted = [each for each in recipe.names if each in names]
            split = len(recipe.names) > 1
            found += [ExpertPart(each, made=True) for each in wanted] if split else map(ExpertPart, recipe.parts)
        return tuple(found)

    def _single(self, mixture: Mixture) -> Iterator[tuple[ExpertPart, ...]]:
        """What the files hold of each expert that is a module; () of one that they do not hold whole."""
        return map(self._whole, mixture.single)

    def _stacked(self, mixture: Mixture) -> Iterator[tuple[ExpertPart, ...]]:
        """What the files hold of each expert that is a row; () of one that they do not hold whole."""
        found: dict[int, list[ExpertPart]] = defaultdict(list)
        recipes = self._recipes(mixture.stacked)
        kinds = 0  # parts that an expert consists of
        for recipe in recipes or ():
            if not _in_rows(recipe):
                for name in (each for each in mixture.stacked if each in recipe.names):
                    kinds += 1
                    for number in range(mixture.count):
                        found[number].append(ExpertPart(name, number, made=True))
                continue
            parts = set(recipe.parts)
            counts = Counter(pattern for name, pattern in recipe.sources if name in parts)
            kinds += len(counts)
            for number, part in self._by_expert(recipe, once=max(counts.values(), default=0) == 1):
                found[number].append(part)
        for number in range(mixture.count):
            yield tuple(found[number]) if recipes and len(found[number]) == kinds else ()

    def _by_expert(self, recipe: TensorRecipe, *, once: bool) -> Iterator[tuple[int, ExpertPart]]:
        """Number of an expert, and a part of it; `once`: there is one tensor of each kind."""
        rows = self._model.get_parameter(recipe.place).shape[0]
        listed = {name for name, pattern in recipe.sources if "*" in pattern}  # by the expert's number
        for name in recipe.parts:
            if once and self._checkpoint.tensors.by_name[name].shape[:1] == (rows,):
                yield from ((number, ExpertPart(name, number)) for number in range(rows))
            elif name in listed and (match := NUMBER.fullmatch(name)) and int(match[2]) < rows:
                yield int(match[2]), ExpertPart(name)


def _in_rows(recipe: TensorRecipe) -> bool:
    """Whether what the files hold of an expert is what its row is made of, and of nothing else."""
    steps = recipe.converter.operations if recipe.converter else ()
    return len(recipe.names) == 1 and all(
        (isinstance(each, MergeModulelist) and each.dim == 0)
        or (isinstance(each, Concatenate) and each.dim > 0)
        or (isinstance(each, Transpose) and min(each.dim0, each.dim1) > 0)
        for each in steps
    )


def find_duplicates(weights: ExpertWeights, measured: Sequence[MeasuredExpert]) -> list[list[int]]:
    """Group the experts that hold the same numbers, and not only zeros.

    Args:
        weights: That they were measured with.
        measured: The experts.

    Returns:
        Places in `measured`, rising, at least two in a group.
    """
    groups: list[list[int]] = []
    order = sorted((each.norm, place) for place, each in enumerate(measured) if each.known and each.norm > 0)
    near: list[list[int]] = []  # groups whose norms are as large as this one's
    for norm, place in order:
        near = [each for each in near if math.isclose(measured[each[0]].norm, norm, rel_tol=CLOSE)]
        group = next((each for each in near if weights.same(measured[each[0]], measured[place])), None)
        if group is None:
            near.append(group := [])
            groups.append(group)
        group.append(place)
    return sorted(sorted(group) for group in groups if len(group) > 1)
