"""Write and read the tensors of a manifest by column: there may be a hundred thousand of them, and few kinds."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import le
from typing import Any

from inspector.store.manifests.columns import Kind, TensorInfo, Tensors
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
from inspector.store.readers.pickles import ITEMSIZES
from inspector.store.readers.safetensors import MAX_NDIM, MAX_TENSORS

# None, or nothing at all, of the last two: the tensor's own. Names without a space in them are one text.
_COLUMNS = ("names", "kind", "begins", "storages", "storage_nbytes")
Sizes = Mapping[str, int]  # of each file by its name
# What was read or written last: a process reads a manifest again for each question, and text that is equal says
# the same of files of equal sizes.
_KNOWN: deque[tuple[str, Sizes, Tensors]] = deque(maxlen=2)


@collector_paused()
def write_tensors(tensors: Tensors, nbytes: Sizes) -> str:
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


def _written(tensors: Tensors) -> str:
    text = " ".join(tensors.names)
    names = text if text.count(" ") == len(tensors) - 1 else tensors.names
    storages, storage_sizes = [], []
    if tensors.shared:
        shared = [tensors.shared.get(number, (None, None)) for number in range(len(tensors))]
        storages, storage_sizes = zip(*shared, strict=True)
    columns = dict(zip(_COLUMNS, (names, tensors.places, tensors.begins, storages, storage_sizes), strict=True))
    return json.dumps({"kinds": [kind._asdict() for kind in tensors.kinds], **columns})


@collector_paused()
def read_tensors(stored: Any, nbytes: Sizes) -> Tensors:
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
        return _written(Tensors.of(found))
    except (TypeError, ValueError) as error:
        raise DamagedError("tensors") from error


def _read(stored: Any, nbytes: Sizes) -> Tensors:
    fields = fields_of(stored, ("kinds", *_COLUMNS))
    kinds = as_list(fields["kinds"], lambda kind: _read_kind(kind, nbytes), most=MAX_TENSORS)
    names, places, begins, storages, storage_sizes = (fields[column] for column in _COLUMNS)
    if type(names) is str and names.count(" ") < MAX_TENSORS:
        names = names.split(" ")
    _refuse_odd_columns(names, places, begins)
    _refuse_odd_texts(names)
    _refuse_odd_sizes(chain(places, begins))
    if len(set(names)) < len(names) or list(dict.fromkeys(places)) != list(range(len(set(kinds)))):
        raise DamagedError("tensors")
    lasts = [last for _, last in kinds]
    if not all(map(le, begins, map(lasts.__getitem__, places))):
        raise DamagedError("reach")
    found = Tensors([kind for kind, _ in kinds], names, places, begins)
    if storages == storage_sizes == []:
        return found
    _refuse_odd_columns(names, storages, storage_sizes)
    return Tensors(found.kinds, names, places, begins, _read_storages(found, storages, storage_sizes))


def _read_storages(tensors: Tensors, names: list[Any], sizes: list[Any]) -> dict[int, tuple[str, int]]:
    """The storages that are not a tensor's own."""
    _refuse_odd_texts([each for each in names if each is not None])
    _refuse_odd_sizes(each for each in sizes if each is not None)
    shared = {}
    for number, (each, name, size) in enumerate(zip(tensors, names, sizes, strict=True)):
        if name is not None or size is not None:
            shared[number] = each.storage if name is None else name, each.storage_nbytes if size is None else size
    return shared


def _read_kind(stored: Any, nbytes: Sizes) -> tuple[Kind, float]:
    """What tensors have in common, and the last byte of the file that they may begin at."""
    kind = fields_of(stored, Kind._fields)
    dtype, file = as_one_of(kind["dtype"], ITEMSIZES), as_one_of(kind["file"], nbytes)
    shape, strides = (as_list(kind[sizes], as_size, most=MAX_NDIM) for sizes in ("shape", "strides"))
    size = as_size(kind["nbytes"])
    if len(shape) != len(strides) or size != math.prod(shape) * ITEMSIZES[dtype]:
        raise DamagedError("shape")
    reach = (1 + sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))) * ITEMSIZES[dtype]
    return Kind(dtype, shape, strides, file, size), nbytes[file] - reach if size else math.inf


def _refuse_odd_columns(*columns: Any) -> None:
    """Refuse what is no list of tensors, or a list for others."""
    if set(map(type, columns)) != {list} or len(set(map(len, columns))) > 1 or len(columns[0]) > MAX_TENSORS:
        raise DamagedError("columns")


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
