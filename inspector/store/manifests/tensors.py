"""Write and read the tensors of a manifest by column: there may be a hundred thousand of them, and few kinds."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from inspector.store.manifests.documents import (
    DamagedError,
    as_list,
    as_one_of,
    as_size,
    as_text,
    collector_paused,
    fields_of,
    parse_object,
)
from inspector.store.manifests.manifest import TensorInfo
from inspector.store.readers.pickles import ITEMSIZES
from inspector.store.readers.safetensors import MAX_NDIM, MAX_TENSORS

_COLUMNS = ("names", "kind", "begins", "storages", "storage_nbytes")  # None of the last two: the tensor's own
_KIND = ("dtype", "shape", "strides", "file", "nbytes")
Sizes = Mapping[str, int]  # of each file by its name
# What was read or written last: a process reads a manifest again for each question, and text that is equal says
# the same of files of equal sizes.
_KNOWN: deque[tuple[str, Sizes, tuple[TensorInfo, ...]]] = deque(maxlen=2)


@collector_paused()
def write_tensors(tensors: tuple[TensorInfo, ...], nbytes: Sizes) -> str:
    """Write tensors as the text that `read_tensors` reads.

    Args:
        nbytes: Size of each file by its name.
    """
    for text, sizes, known in tuple(_KNOWN):
        if known is tensors and sizes == nbytes:
            return text
    text = _written(tensors)
    _KNOWN.append((text, dict(nbytes), tensors))
    return text


def _written(tensors: Iterable[TensorInfo]) -> str:
    kinds: dict[tuple[Any, ...], int] = {}
    rows = []
    for name, dtype, shape, strides, file, begin, size, storage, storage_size in tensors:
        kind = kinds.setdefault((dtype, shape, strides, file, size), len(kinds))
        own = storage == f"{file}:{name}"
        rows.append((name, kind, begin, None if own else storage, None if storage_size == size else storage_size))
    columns = dict(zip(_COLUMNS, zip(*rows, strict=True) if rows else repeat(()), strict=False))
    return json.dumps({"kinds": [dict(zip(_KIND, kind, strict=True)) for kind in kinds], **columns})


@collector_paused()
def read_tensors(stored: Any, nbytes: Sizes) -> tuple[TensorInfo, ...]:
    """Check that each tensor lies within its file, however it is strided, and that no name comes twice.

    Args:
        stored: As `write_tensors` wrote it, or as manifests had it before: a list of TensorInfo's
            fields for each tensor.
        nbytes: Size of each file by its name.

    Raises:
        DamagedError: If it is not as either was written.
    """
    text = as_text(stored if type(stored) is str else _rewritten(stored))
    for known_text, sizes, known in tuple(_KNOWN):
        if known_text == text and sizes == nbytes:
            return known
    found = _read(parse_object(text.encode(), "tensors"), nbytes)
    _KNOWN.append((text, dict(nbytes), found))
    return found


def _rewritten(rows: Any) -> str:
    """The list of an earlier manifest, still unchecked."""
    try:
        found = (
            TensorInfo(name, dtype, tuple(shape), tuple(strides), *rest)
            for name, dtype, shape, strides, *rest in as_list(rows, list, most=MAX_TENSORS)
        )
        return _written(found)
    except (TypeError, ValueError) as error:
        raise DamagedError("tensors") from error


def _read(stored: Any, nbytes: Sizes) -> tuple[TensorInfo, ...]:
    fields = fields_of(stored, ("kinds", *_COLUMNS))
    kinds = as_list(fields["kinds"], lambda kind: _read_kind(kind, nbytes), most=MAX_TENSORS)
    columns = [fields[column] for column in _COLUMNS]
    if set(map(type, columns)) != {list} or len(set(map(len, columns))) > 1 or len(columns[0]) > MAX_TENSORS:
        raise DamagedError("columns")
    names, places, begins, storages, storage_sizes = columns
    _refuse_odd_texts(names)
    _refuse_odd_texts([each for each in storages if each is not None])
    _refuse_odd_sizes(chain(places, begins, (each for each in storage_sizes if each is not None)))
    if len(set(names)) < len(names) or max(places, default=-1) >= len(kinds):
        raise DamagedError("tensors")
    found = []
    for name, place, begin, storage, storage_size in zip(*columns, strict=True):
        dtype, shape, strides, file, size, last = kinds[place]
        if begin > last:
            raise DamagedError("reach")
        own = f"{file}:{name}" if storage is None else storage
        held = size if storage_size is None else storage_size
        found.append((name, dtype, shape, strides, file, begin, size, own, held))
    return tuple(map(TensorInfo._make, found))


def _read_kind(stored: Any, nbytes: Sizes) -> tuple[str, tuple[int, ...], tuple[int, ...], str, int, float]:
    """What tensors have in common, and the last byte of the file that they may begin at."""
    kind = fields_of(stored, _KIND)
    dtype, file = as_one_of(kind["dtype"], ITEMSIZES), as_one_of(kind["file"], nbytes)
    shape, strides = (as_list(kind[sizes], as_size, most=MAX_NDIM) for sizes in ("shape", "strides"))
    size = as_size(kind["nbytes"])
    if len(shape) != len(strides) or size != math.prod(shape) * ITEMSIZES[dtype]:
        raise DamagedError("shape")
    reach = (1 + sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))) * ITEMSIZES[dtype]
    return dtype, shape, strides, file, size, nbytes[file] - reach if size else math.inf


def _refuse_odd_texts(column: Sequence[Any]) -> None:
    """Refuse what is no text, or cannot be encoded: a lone surrogate."""
    if not set(map(type, column)) <= {str}:
        raise DamagedError("str")
    try:
        "".join(column).encode()
    except UnicodeEncodeError as error:
        raise DamagedError("text") from error


def _refuse_odd_sizes(values: Iterable[Any]) -> None:
    """Refuse what is no whole number from 0 on; True is an int, but no size."""
    found = list(values)
    if not set(map(type, found)) <= {int} or min(found, default=0) < 0 or max(found, default=0) >= 2**63:
        raise DamagedError("size")
