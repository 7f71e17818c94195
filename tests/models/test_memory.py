"""Overlap in memory against sets of bytes, counted one by one."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import torch
from torch import nn

from inspector.models.memory import covered_nbytes, overlaps, shared_names


def bytes_of(tensor: torch.Tensor) -> set[int]:
    """Every address that a tensor's elements occupy."""
    occupied: set[int] = set()
    for index in itertools.product(*map(range, tensor.shape)):
        step = sum(i * stride for i, stride in zip(index, tensor.stride(), strict=True))
        first = tensor.data_ptr() + step * tensor.itemsize
        occupied |= set(range(first, first + tensor.itemsize))
    return occupied


def components(occupied: dict[str, set[int]]) -> dict[frozenset[str], int]:
    """Groups of names that a chain of common addresses joins -> how many addresses they have."""
    found: list[tuple[set[str], set[int]]] = []
    for name, places in occupied.items():
        touching = [each for each in found if each[1] & places]
        found = [each for each in found if not each[1] & places]
        names = {name}.union(*(each[0] for each in touching))
        found.append((names, places.union(*(each[1] for each in touching))))
    return {frozenset(names): len(places) for names, places in found if len(names) > 1}


def random_view(base: torch.Tensor, rng: random.Random) -> torch.Tensor:
    view = base
    for _ in range(rng.randint(0, 3)):
        axis = rng.randrange(view.dim())
        size = view.shape[axis]
        begin = rng.randrange(size)
        part = slice(begin, rng.randint(begin + 1, size), rng.randint(1, 3))
        view = rng.choice(
            [
                view.transpose(0, -1),
                view[(slice(None),) * axis + (part,)],
                view.unsqueeze(0).expand(2, *view.shape),
                view.select(axis, begin) if view.dim() > 1 else view,
            ]
        )
    return view


@pytest.mark.parametrize("seed", range(300))
def test_groups_and_bytes_are_those_of_brute_force(seed):
    rng = random.Random(seed)
    shape = rng.choice([(4, 6), (3, 4, 2), (20,)])
    bases = [torch.zeros(shape, dtype=rng.choice([torch.float32, torch.float64])) for _ in "ab"]
    views = {str(n): random_view(rng.choice(bases), rng) for n in range(rng.randint(2, 7))}
    if rng.random() < 0.3:  # another dtype over the same bytes
        views["half"] = bases[0].view(torch.float16)[..., 1::3]
    truth = components({name: bytes_of(view) for name, view in views.items()})
    found = overlaps(views.items())
    assert {frozenset(names) for names in shared_names(views.items())} == set(truth)
    assert {frozenset(b.name for b in group): covered_nbytes(group) for group in found} == truth


def test_views_offsets_transposes_and_two_parameters_on_one_storage():
    base = torch.arange(24.0).reshape(4, 6)
    tensors = {
        "whole": nn.Parameter(base),
        "again": nn.Parameter(base),  # another Parameter object
        "row": base[2],  # another pointer
        "transposed": base.T,
        "clone": base.clone(),
        "meta": torch.empty(4, 6, device="meta"),
        "empty": base[:0],
        "sparse": base.to_sparse(),
    }
    assert shared_names(tensors.items()) == [("whole", "again", "row", "transposed")]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_views_that_leave_gaps_are_compared_where_there_is_no_memory(device):
    """There a block may begin at place 0."""
    whole = torch.empty(8, 6, device=device)
    named = [("even", whole[::2, ::2]), ("odd", whole[1::2, ::2]), ("row", whole[0].expand(3, 6))]
    assert shared_names(named) == [("even", "row")]


def test_neighbors_that_never_meet():
    base = torch.arange(24.0).reshape(4, 6)
    halves = {"top": base[:2], "bottom": base[2:]}
    columns = {"even": base[:, ::2], "odd": base[:, 1::2]}  # their spans cross, their bytes do not
    assert shared_names(halves.items()) == []
    assert shared_names(columns.items()) == []
    everything = {**halves, **columns, "whole": base}
    (group,) = overlaps(everything.items())
    assert {block.name for block in group} == set(everything)
    assert covered_nbytes(group) == 24 * 4
    (left,) = overlaps({"left": base[:, :4], "middle": base[:, 3:5]}.items())
    assert covered_nbytes(left) == 4 * 5 * 4


def test_nested_views_are_one_group():
    base = torch.zeros(16)
    views = {"whole": base, "half": base[8:], "quarter": base[8:12], "element": base[9:10]}
    assert shared_names(views.items()) == [tuple(views)]


def test_two_storages_over_one_buffer():
    array = np.zeros(16, dtype=np.float32)
    tensors = {"all": torch.from_numpy(array), "end": torch.from_numpy(array[12:])}
    pointers = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
    assert len(pointers) == 2
    assert shared_names(tensors.items()) == [("all", "end")]


def test_order_is_that_of_the_names():
    base = torch.zeros(8)
    other = torch.zeros(8)
    tensors = [("d", other), ("c", base[4:]), ("b", other[1:]), ("a", base)]
    assert shared_names(tensors) == [("d", "b"), ("c", "a")]


def test_many_strided_views_that_numpy_would_search_for_long():
    base = torch.zeros(2, 3, 5, 7, 11)
    orders = list(itertools.permutations(range(5)))[::17]
    views = {str(order): base.permute(*order)[1:, ::2] for order in orders}
    truth = components({name: bytes_of(view) for name, view in views.items()})
    assert {frozenset(names) for names in shared_names(views.items())} == set(truth)
