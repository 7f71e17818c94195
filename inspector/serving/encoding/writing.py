"""Turn plain values, results, arrays and frames into bytes."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspector.serving.encoding import parts as kinds
from inspector.serving.encoding.parts import DTYPES, MASKED_DTYPES, join

SCALARS = (bool, int, float, str)  # exactly these: JSON has them


def encode(value: Any) -> bytes:
    """Turn a value into bytes; `decode` gives it back.

    Raises:
        TypeError: If a value does not travel.
    """
    parts: list[bytes] = []
    return join(_plain(value, parts), parts)


def _plain(value: Any, parts: list[bytes]) -> Any:
    if value is None or type(value) in SCALARS:
        return value
    if type(value) is list:
        return [_plain(item, parts) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [_plain(getattr(value, field.name), parts) for field in dataclasses.fields(value)]
        return {kinds.OBJECT: [type(value).__name__, *fields]}
    # A signal's number is a number, and a Counter is a dict
    writer = next((WRITERS[kind] for kind in type(value).__mro__ if kind in WRITERS), None) or _of_libraries(value)
    return writer(value, parts)


def _of_libraries(value: Any) -> Callable[[Any, list[bytes]], Any]:
    """For what nobody has where the library is not imported, or another thread is just importing it."""
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if isinstance(value, getattr(numpy, "ndarray", ())):
        return _array
    if isinstance(value, getattr(numpy, "generic", ())):
        return lambda value, parts: _plain(value.item(), parts)
    if type(value) is getattr(pandas, "DataFrame", None):
        return _frame
    raise TypeError(f"A value of type {type(value).__name__} cannot travel between processes.")


def _items(kind: str) -> Callable[[Any, list[bytes]], Any]:
    def write(value: Any, parts: list[bytes]) -> Any:
        texts = set(map(type, value)) == {str}  # a hundred thousand names may be among them
        return {kind: list(value) if texts else [_plain(item, parts) for item in value]}

    return write


def _dict(value: dict[Any, Any], parts: list[bytes]) -> Any:
    return {kinds.DICT: [[_plain(key, parts), _plain(item, parts)] for key, item in value.items()]}


def _bytes(value: bytes, parts: list[bytes]) -> Any:
    parts.append(value)
    return {kinds.BYTES: len(value)}


WRITERS: dict[type, Callable[[Any, list[bytes]], Any]] = {
    tuple: _items(kinds.TUPLE),
    set: _items(kinds.SET),
    frozenset: _items(kinds.FROZEN),
    dict: _dict,
    bytes: _bytes,
    Path: lambda value, parts: {kinds.PATH: str(value)},
    int: lambda value, parts: int(value),
    float: lambda value, parts: float(value),
    str: lambda value, parts: str.__str__(value),
    complex: lambda value, parts: {kinds.COMPLEX: [value.real, value.imag]},
}


def _array(value: Any, parts: list[bytes]) -> Any:
    if value.dtype.name not in DTYPES:
        raise TypeError(f"An array of {value.dtype} cannot travel between processes.")
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    data = value.tobytes()
    parts.append(data)
    return {kinds.ARRAY: [value.dtype.name, list(value.shape), len(data)]}


def _frame(frame: Any, parts: list[bytes]) -> Any:
    names = list(frame.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise TypeError("A frame whose columns have no names of their own cannot travel between processes.")
    index = _index(frame.index, parts)  # first: the bytes follow in this order
    return {kinds.FRAME: [index, [[name, _column(frame[name].array, parts)] for name in names]]}


def _index(index: Any, parts: list[bytes]) -> Any:
    pandas = sys.modules["pandas"]
    if type(index) is pandas.RangeIndex:
        return [index.name, index.start, index.stop, index.step]
    if isinstance(index, pandas.MultiIndex):
        raise TypeError("A frame with an index of several levels cannot travel between processes.")
    return [index.name, _column(index.array, parts)]


def _column(array: Any, parts: list[bytes]) -> Any:
    """What a column is, and its values."""
    pandas = sys.modules["pandas"]
    dtype = array.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        codes = _array(array.codes, parts)
        return [kinds.CATEGORIES, codes, _column(dtype.categories.array, parts), bool(dtype.ordered)]
    if isinstance(dtype, pandas.StringDtype):
        if dtype != "str":
            raise TypeError(f"A column of {dtype} cannot travel between processes.")
        return [kinds.TEXTS, [text if isinstance(text, str) else None for text in array]]
    if dtype.name in MASKED_DTYPES:
        absent = array.isna()
        values = array.to_numpy(dtype=MASKED_DTYPES[dtype.name], na_value=0)
        return [kinds.MASKED, dtype.name, _array(values, parts), _array(absent, parts)]
    if dtype.kind == "O":
        return [kinds.OBJECTS, [_plain(item, parts) for item in array]]
    return [kinds.NUMBERS, _array(array.to_numpy(), parts)]
