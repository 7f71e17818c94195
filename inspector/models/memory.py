"""Find tensors that occupy the same memory, and count bytes once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

MOST_WORK = 1_000_000  # steps of the exact overlap search before it is taken for an overlap


@dataclass(frozen=True, slots=True)
class Block:
    """Where one tensor lies in memory."""

    place: int  # in the order given
    name: str
    space: str  # blocks of different spaces never overlap
    begin: int  # of its first byte, counted in its space
    end: int  # one past its last byte
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    dense: bool  # it fills every byte from begin to end, in whatever order


def named_tensors(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Every parameter and then buffer under every one of its names, in the order of the modules."""
    parameters: list[tuple[str, torch.Tensor]] = []
    buffers: list[tuple[str, torch.Tensor]] = []
    for path, part in module.named_modules(remove_duplicate=False):  # once, for both
        start = f"{path}." if path else ""
        for held, found in ((part._parameters, parameters), (part._buffers, buffers)):
            found += [(start + name, each) for name, each in held.items() if each is not None]
    return parameters + buffers


def locate(place: int, name: str, tensor: torch.Tensor) -> Block | None:
    """Say where a tensor lies; None for those without memory (sparse, empty)."""
    span = _span(tensor)
    if span is None:
        return None
    shape, strides = tuple(tensor.shape), tensor.stride()
    dense = _fills(shape, strides)
    return Block(place, name, _space(tensor), *span, tensor.itemsize, shape, strides, dense)


def shared_names(tensors: Iterable[tuple[str, torch.Tensor]]) -> list[tuple[str, ...]]:
    """Group names whose tensors have a byte in common.

    Neither `is` nor an equal pointer finds that: two Parameters may wrap one storage, two storages
    one buffer, a view may begin elsewhere or be transposed, and two columns of a matrix may lie in
    between each other without meeting.

    Args:
        tensors: (name, tensor), any devices and dtypes.

    Returns:
        Groups of at least two names, each in the given order, by their first name's place. Names
        are in one group if a chain of overlaps joins them: a whole and two of its halves are one.
    """
    return [tuple(block.name for block in group) for group in overlaps(tensors)]


def overlaps(tensors: Iterable[tuple[str, torch.Tensor]]) -> list[list[Block]]:
    """Group tensors as `shared_names` does, with where each of them lies."""
    named = list(tensors)
    spans: dict[str, list[tuple[int, int, int]]] = {}
    on_cpu = spans.setdefault("cpu", [])
    for place, (_, tensor) in enumerate(named):
        span = _span(tensor)
        if span is not None:
            found = on_cpu if tensor.is_cpu else spans.setdefault(_space(tensor), [])
            found.append((*span, place))
    clusters = [cluster for found in spans.values() for cluster in _clusters(found)]
    groups: list[list[Block]] = []
    for cluster in clusters:
        blocks = [locate(place, *named[place]) for place in cluster]
        groups += _joined([block for block in blocks if block is not None])
    return sorted(groups, key=lambda group: group[0].place)


def covered_nbytes(blocks: Sequence[Block]) -> int:
    """Bytes that blocks of one group occupy, those in common counted once."""
    begin = min(block.begin for block in blocks)
    end = max(block.end for block in blocks)
    reached, covered = begin, 0
    for block in sorted((b for b in blocks if b.dense), key=lambda block: block.begin):
        covered += max(0, block.end - max(block.begin, reached))
        reached = max(reached, block.end)
    if covered == end - begin or all(block.dense for block in blocks):
        return covered
    return _marked_nbytes(blocks, begin, end)


def _clusters(spans: list[tuple[int, int, int]]) -> list[list[int]]:
    """Places of the spans (begin, end, place) that a chain of crossings joins, two or more."""
    spans.sort()
    clusters: list[list[int]] = []
    reached, before, crossing = -1, -1, False
    for begin, end, place in spans:
        if begin >= reached:
            reached, crossing = end, False
        else:
            if not crossing:
                clusters.append([before])
            clusters[-1].append(place)
            reached, crossing = max(reached, end), True
        before = place
    return clusters


def _span(tensor: torch.Tensor) -> tuple[int, int] | None:
    """First byte and one past the last, counted in the tensor's space."""
    nbytes = tensor.nbytes if tensor.layout is torch.strided else 0
    if not nbytes:
        return None
    if not tensor.is_contiguous():
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        nbytes = (sum((size - 1) * step for size, step in steps) + 1) * tensor.itemsize
    begin = tensor.data_ptr() if tensor.is_cpu or tensor.is_cuda else int(tensor.storage_offset()) * tensor.itemsize
    return begin, begin + nbytes


def _space(tensor: torch.Tensor) -> str:
    """Tensors of different spaces never overlap.

    On CPU and CUDA `data_ptr` is an address: there, two storages over one buffer are found as well.
    Elsewhere it may be a handle, and tensors are compared within one storage only; on the meta
    device, which has no memory, a storage is told by itself.
    """
    if tensor.is_cpu or tensor.is_cuda:
        return str(tensor.device)
    storage = tensor.untyped_storage()
    return f"{tensor.device} {storage._cdata if tensor.is_meta else storage.data_ptr()}"


def _fills(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether axes, taken from the smallest step, fill every place once: a permuted whole."""
    step = 1
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size == 1:
            continue
        if stride != step:
            return False
        step *= size
    return True


def _joined(cluster: list[Block]) -> list[list[Block]]:
    """Join the blocks of a cluster whose bytes really meet; groups of at least two, in order."""
    if all(block.dense for block in cluster):  # then spans that meet are bytes that meet
        return [sorted(cluster, key=lambda block: block.place)]
    groups: list[list[Block]] = []
    for block in cluster:
        meeting = [group for group in groups if any(_meet(other, block) for other in group)]
        groups = [group for group in groups if not any(group is each for each in meeting)]
        groups.append([*(other for group in meeting for other in group), block])
    return [sorted(group, key=lambda block: block.place) for group in groups if len(group) > 1]


def _meet(first: Block, second: Block) -> bool:
    if first.end <= second.begin or second.end <= first.begin:
        return False
    if first.dense and second.dense:
        return True
    try:  # numpy solves for a common byte; only addresses are looked at, never memory
        return bool(np.shares_memory(_shadow(first), _shadow(second), max_work=MOST_WORK))  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True


NOT_NULL = 4096  # where there is no memory, the first byte's place is 0, which numpy takes for no place at all


def _shadow(block: Block) -> np.ndarray:
    """An array with the block's addresses, whose elements must not be read."""

    class Addresses:
        __array_interface__ = {  # noqa: RUF012 - numpy's protocol
            "version": 3,
            "data": (NOT_NULL + block.begin, True),
            "typestr": f"|V{block.itemsize}",
            "shape": block.shape,
            "strides": tuple(stride * block.itemsize for stride in block.strides),
        }

    return np.asarray(Addresses())


def _marked_nbytes(blocks: Sequence[Block], begin: int, end: int) -> int:
    """Mark every grain that a block occupies, and count."""
    grain = math.gcd(*(block.begin - begin for block in blocks), *(block.itemsize for block in blocks))
    marks = np.zeros((end - begin) // grain, dtype=bool)
    for block in blocks:
        item = block.itemsize // grain
        view = np.lib.stride_tricks.as_strided(
            marks[(block.begin - begin) // grain :],
            shape=(*block.shape, item),
            strides=(*(stride * item for stride in block.strides), 1),
        )
        view[...] = True
    return int(marks.sum()) * grain


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
