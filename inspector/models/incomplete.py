"""Say which tensors of a file keep it from being a model: those without numbers, and experts lost or stored twice."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from inspector.text import plural, some

if TYPE_CHECKING:  # torch: what names tell is told without it
    from transformers import PreTrainedModel

    from inspector.models.naming import Places, TensorRecipe

GATHER = (
    "If the run was sharded, gather its weights (for ZeRO-3, with the zero_to_fp32.py of its folder) and save them "
    "again."
)
SAVE_ONE = "If a converter wrote them, have it write one of the two."
FIND_THEM = "Look for the shard, or the file of the training rank, that has them."
COMPARE_CONFIG = "Compare config.json with the original model's."
NUMBER = re.compile(r"(.*[._])(\d+)(\..*)", re.DOTALL)  # the last number of a name, and what is around it
NAMED = 3  # experts that are named in a sentence

Shapes = Mapping[str, Sequence[int]]  # of tensors by name


class Fault(NamedTuple):
    """What keeps a file from being a model."""

    problem: str  # of each tensor, in a few words
    said: str  # of all of them, in a clause
    next_step: str  # in a sentence
    tensors: Mapping[str, str]  # name -> what is wrong with it, in a sentence

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do next."""
        return f"{self.said}: {self.next_step[:1].lower()}{self.next_step[1:]}"


def find_fault(name: str, model: PreTrainedModel, places: Places, shapes: Shapes) -> Fault | None:
    """Find out why a class cannot be filled with the tensors of a file.

    Args:
        name: Of the checkpoint.
        model: Of the class; it may be on the meta device.
        places: Where the class puts the tensors.
        shapes: Of the stored tensors.

    Returns:
        None if it is something else.
    """
    used = {tensor: shapes[tensor] for tensor, filled in places.filled.items() if filled}
    merged = [recipe for recipe in places.recipes if _merges(recipe)]
    wanted = {place: tensor.shape for place, tensor in model.state_dict().items()}
    others = all(tuple(shapes[stored]) == tuple(wanted[place]) for place, stored in places.stored_as.items())
    return no_numbers(name, used) or _stored_twice(name, merged) or _miscounted(name, merged, wanted, others=others)


def no_numbers(name: str, shapes: Shapes) -> Fault | None:
    """Find the tensors of a checkpoint that hold no numbers."""
    empty = [tensor for tensor, shape in shapes.items() if 0 in shape]
    if not empty:
        return None
    said = (
        f"{len(empty):,} of {plural(len(shapes), 'tensor')} of {name} contain no numbers ({_such_as(empty)}, of shape "
        f"{list(shapes[empty[0]])}), like the placeholders that sharded training (DeepSpeed ZeRO-3, FSDP) saves"
    )
    return Fault("contains no numbers", said, GATHER, {each: f"Its shape is {list(shapes[each])}." for each in empty})


def codes_and_numbers(name: str, codes: Mapping[str, str], stored: Collection[str]) -> Fault | None:
    """Find the weights that a checkpoint stores both plainly and as codes.

    Args:
        name: Of the checkpoint.
        codes: Weight -> what is stored of it as codes.
        stored: All names in the files.
    """
    twice = {weight: each for weight, each in codes.items() if each != weight and weight in stored}
    if not twice:
        return None
    said = f"{name} stores {plural(len(twice), 'weight')} twice, plainly and as codes ({_such_as(list(twice))})"
    return Fault("stored twice", said, SAVE_ONE, {each: f"{part} has codes of it." for each, part in twice.items()})


def _merges(recipe: TensorRecipe) -> bool:
    from transformers.core_model_loading import MergeModulelist

    return any(isinstance(each, MergeModulelist) for each in (recipe.converter.operations if recipe.converter else ()))


def _stored_twice(name: str, recipes: Iterable[TensorRecipe]) -> Fault | None:
    twice = {fused: recipe.parts[0] for recipe in recipes for fused in recipe.repeated if recipe.parts}
    if not twice:
        return None
    fused, part = next(iter(twice.items()))
    layers = some(list(dict.fromkeys(_layer(each) for each in twice)), NAMED)
    said = f"{name} stores the experts of {layers} twice, one by one (such as {part}) and fused ({fused})"
    details = {fused: f"Its experts are stored one by one, too, such as {part}." for fused, part in twice.items()}
    return Fault("stored twice", said, SAVE_ONE, details)


def _miscounted(name: str, recipes: Sequence[TensorRecipe], wanted: Shapes, *, others: bool) -> Fault | None:
    """Too few or too many of the tensors that a loader makes one of: experts.

    Args:
        others: All other tensors, the routers too, are as config.json asks for.
    """
    every = [(members, wanted[recipe.place][0]) for recipe in recipes for members in _members(recipe)]
    lost = [members.name(n) for members, count in every for n in range(count) if n not in members.names]
    more = [members.names[n] for members, count in every for n in sorted(members.names) if n >= count]
    if not lost and not more:
        return None
    counts = {count for _, count in every}
    if not others:
        held = {len(members.names) for members, _ in every}
        said = f"{name} has {max(held):,} experts in each layer, but config.json asks for {max(counts):,}"
        return Fault("another number of experts", said, COMPARE_CONFIG, dict.fromkeys(lost or more, f"{said}."))
    experts = list(dict.fromkeys(_expert(each) for each in lost or more))
    which = f"{some(experts, NAMED)} ({_such_as(lost or more)})"
    details = {each: f"Part of {_expert(each)}." for each in lost or more}
    if lost:
        return Fault("not in the file", f"{name} lacks {plural(len(lost), 'tensor')} of {which}", FIND_THEM, details)
    said = f"{name} has {which}, but config.json asks for {max(counts):,} experts in each layer"
    return Fault("more experts than config.json asks for", said, COMPARE_CONFIG, details)


class _Members(NamedTuple):
    """Tensors of one kind of which a loader makes a part of one: all experts' gates."""

    names: Mapping[int, str]  # by the expert's number
    before: str  # what stands before the number in their names
    after: str

    def name(self, number: int) -> str:
        """What one is called, or would be."""
        return f"{self.before}{number}{self.after}"


def _members(recipe: TensorRecipe) -> list[_Members]:
    patterns = recipe.converter.source_patterns if recipe.converter else []
    found: dict[str, dict[int, str]] = {pattern: {} for pattern in patterns}
    before, own = "", {}
    for name, pattern in recipe.sources:
        if match := NUMBER.fullmatch(name):
            before, own[pattern] = match[1], match[3]
            found[pattern][int(match[2])] = name
    ends = {pattern: re.sub(r"\\(.)", r"\1", pattern.rpartition("*")[2]).rstrip("$") for pattern in found}
    return [_Members(names, before, own.get(pattern, ends[pattern])) for pattern, names in found.items()]


def _expert(name: str) -> str:
    """Which expert of which layer a tensor belongs to."""
    match = NUMBER.fullmatch(name)
    return f"expert {match[2]} of {_layer(match[1])}" if match else name


def _layer(name: str) -> str:
    """Which layer a tensor belongs to."""
    match = NUMBER.fullmatch(name)
    return f"layer {match[2]}" if match else name


def _such_as(names: Sequence[str]) -> str:
    return f"such as {names[0]}" if len(names) > 1 else names[0]
