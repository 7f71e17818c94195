"""Pair experts that one checkpoint stores one by one with the parts of what the other stores fused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from inspector.analyses.compare.compute_names import CheckpointNames, Pair
from inspector.analyses.compare.compute_parts import StoredTensor
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.readers.safetensors import contiguous_strides

if TYPE_CHECKING:  # torch: without it, there is no class whose experts are fused
    from transformers import PreTrainedModel

    from inspector.models.naming import TensorRecipe

ROWS, COLUMNS = 2, 3  # of what stands for an expert's matrix, to see where the loader puts it

Side = dict[str, StoredTensor]  # what a checkpoint stores, by name


@dataclass(slots=True)
class Fused:
    """Which tensors are paired by what a loader makes of them."""

    pairs: list[Pair] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # names in either checkpoint that need no other partner

    def rest(self, names: CheckpointNames) -> CheckpointNames:
        """The names that are still without a partner."""
        return replace(names, held=[name for name in names.held if name not in self.used])


def pair_experts(first: StagedCheckpoint, second: StagedCheckpoint, ones: Side, others: Side) -> Fused:
    """Pair each expert with its part of a fused tensor, and add these parts to what is stored.

    Args:
        first: Before.
        second: After.
        ones: What the first stores; parts of its fused tensors are added.
        others: Likewise of the second.
    """
    found = Fused()
    if ones.keys() <= others.keys() or others.keys() <= ones.keys():
        return found
    for single, fused, there, turned in ((first, second, others, False), (second, first, ones, True)):
        for name, whole, part in _parts(single, fused, ones if turned else others, others if turned else ones):
            there[part.info.name] = part
            found.pairs.append(Pair(part.info.name, name, "part") if turned else Pair(name, part.info.name, "part"))
            found.used |= {name, whole}
    return found


def _parts(
    single: StagedCheckpoint, fused: StagedCheckpoint, whole: Side, alone: Side
) -> Iterator[tuple[str, str, StoredTensor]]:
    """Name of an expert's tensor in `single`, of the one in `fused` that it is a part of, and that part."""
    if single.structure is None or fused.structure is None:
        return
    model, places = single.structure
    stored_as = fused.structure[1].stored_as
    for recipe in places.recipes:
        target = whole.get(stored_as.get(recipe.place, ""))
        parts = [alone[name] for name in recipe.parts]
        if target is None or target.info.name in alone or not _is_whole(recipe, target.info.shape):
            continue
        if all(map(_is_plain, (target, *parts))):
            for part, view in zip(parts, _views(model, recipe, target, parts), strict=False):
                yield part.info.name, target.info.name, view


def _is_whole(recipe: TensorRecipe, shape: Sequence[int]) -> bool:
    """Whether each kind of part is there once for each expert, and nothing else."""
    wanted = recipe.converter.source_patterns if recipe.converter else []
    counts = Counter(pattern for _, pattern in recipe.sources)
    return bool(wanted) and counts == dict.fromkeys(wanted, shape[0])


def _is_plain(stored: StoredTensor) -> bool:
    """Whether its numbers lie in the file in their order, as floats."""
    return stored.readable and not stored.quantized and stored.info.strides == contiguous_strides(stored.info.shape)


def _views(
    model: PreTrainedModel, recipe: TensorRecipe, fused: StoredTensor, parts: list[StoredTensor]
) -> list[StoredTensor]:
    """Each part of a fused tensor, as if it were stored by itself; none where a loader does more than lay them out."""
    import torch

    size = ROWS * COLUMNS
    tags = {part.info.name: number * size + torch.arange(size).view(ROWS, COLUMNS) for number, part in enumerate(parts)}
    made = recipe.make(model, tags.__getitem__, torch.float64).get(recipe.place)
    if made is None or made.dim() != len(fused.info.shape) or made.dim() != 3 or made.shape[2] != COLUMNS:
        return []
    rows = made.flatten(0, 1)[:, 0].long()  # the first tag of each row says whose it is, and which of its rows
    height, columns = fused.info.shape[1:]
    views = []
    for number, part in enumerate(parts):
        begin = (rows == number * size).nonzero().flatten().tolist()
        if len(begin) != 1 or not torch.equal(
            made.flatten(0, 1)[begin[0] : begin[0] + ROWS], tags[part.info.name].double()
        ):
            return []
        expert, row = divmod(begin[0], made.shape[1])
        row = row // ROWS * part.info.shape[0]
        if part.info.shape[1] != columns or made.shape[1] // ROWS * part.info.shape[0] != height:
            return []
        views.append(_view(fused, part, expert, row))
    return views


def _view(fused: StoredTensor, part: StoredTensor, expert: int, row: int) -> StoredTensor:
    """The part of a fused tensor that is one expert's matrix, or some of its rows."""
    info, shape = fused.info, part.info.shape
    height, columns = info.shape[1:]
    itemsize = info.nbytes // math.prod(info.shape)
    nbytes = math.prod(shape) * itemsize
    rows = "" if shape[0] == height else f", {row}:{row + shape[0]}"
    name = f"{info.name}[{expert}{rows}]"
    begin = info.begin + (expert * height + row) * columns * itemsize
    return StoredTensor(
        fused.manifest,
        info._replace(
            name=name,
            shape=shape,
            strides=contiguous_strides(shape),
            begin=begin,
            nbytes=nbytes,
            storage=f"{info.file}:{name}",
            storage_nbytes=nbytes,
        ),
    )
