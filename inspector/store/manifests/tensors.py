"""Read the tensors of a manifest by column: there may be a hundred thousand of them, and few shapes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from inspector.store.manifests.documents import DamagedError, as_list
from inspector.store.manifests.manifest import TensorInfo
from inspector.store.readers.pickles import ITEMSIZES
from inspector.store.readers.safetensors import MAX_NDIM, MAX_TENSORS, SHAPES


def read_tensors(stored: Any, nbytes: Mapping[str, int]) -> tuple[TensorInfo, ...]:
    """Check that each tensor lies within its file, however it is strided, and that no name comes twice.

    Args:
        stored: The parsed list, a list of TensorInfo's fields for each tensor.
        nbytes: Size of each file by its name.

    Raises:
        DamagedError: If the list is not as `save_manifest` writes it.
    """
    rows = as_list(stored, _as_row, most=MAX_TENSORS)
    if not rows:
        return ()
    names, dtypes, shapes, strides, files, begins, sizes, storages, storage_sizes = zip(*rows, strict=True)
    _refuse_odd_texts(names, storages)
    _refuse_odd_words(dtypes, ITEMSIZES)
    _refuse_odd_words(files, nbytes)
    _refuse_odd_sizes(chain(begins, sizes, storage_sizes, _flat(shapes), _flat(strides)))
    if len(set(names)) < len(names):
        raise DamagedError("tensors")
    kinds = list(zip(dtypes, map(tuple, shapes), map(tuple, strides), strict=True))
    known = {kind: (kind, *_measure(*kind)) for kind in set(kinds)}
    held = {file: (file, size) for file, size in nbytes.items()}
    found = []
    for row, kind in zip(rows, kinds, strict=True):
        (dtype, shape, stride), count, reach = known[kind]  # of equal values one is kept: memory counts
        name, _, _, _, place, begin, size, storage, storage_size = row
        file, end = held[place]
        if size != count:
            raise DamagedError("shape")
        if size and begin + reach > end:
            raise DamagedError("reach")
        found.append((name, dtype, shape, stride, file, begin, size, storage, storage_size))
    return tuple(map(TensorInfo._make, found))


def _as_row(values: Any) -> list[Any]:
    if type(values) is not list or len(values) != len(TensorInfo._fields):
        raise DamagedError("tensor")
    return values


def _flat(lists: Sequence[Any]) -> Iterable[Any]:
    """The items of lists that are short enough to be shapes or strides."""
    if set(map(type, lists)) != {list} or max(map(len, lists)) > MAX_NDIM:
        raise DamagedError("sizes")
    return chain.from_iterable(lists)


def _refuse_odd_texts(*columns: Sequence[Any]) -> None:
    """Refuse what is no text, or cannot be encoded: a lone surrogate."""
    for column in columns:
        if set(map(type, column)) != {str}:
            raise DamagedError("str")
        try:
            "".join(column).encode()
        except UnicodeEncodeError as error:
            raise DamagedError("text") from error


def _refuse_odd_words(column: Sequence[Any], allowed: Collection[str]) -> None:
    if set(map(type, column)) != {str} or not set(column) <= set(allowed):
        raise DamagedError("word")


def _refuse_odd_sizes(values: Iterable[Any]) -> None:
    """Refuse what is no whole number from 0 on; True is an int, but no size."""
    found = list(values)
    if set(map(type, found)) != {int} or min(found) < 0 or max(found) >= 2**63:
        raise DamagedError("size")


@lru_cache(maxsize=SHAPES)
def _measure(dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """How many bytes a tensor has, and how many lie between its first and its last, these included."""
    if len(shape) != len(strides):
        raise DamagedError("shape")
    reach = 1 + sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))
    return math.prod(shape) * ITEMSIZES[dtype], reach * ITEMSIZES[dtype]
