"""Read arrays and data frames, their sizes checked against the bytes that are there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from inspector.serving.encoding import parts as kinds
from inspector.serving.encoding.parts import DTYPES, MASKED_DTYPES, MAX_AXES, MAX_VALUES, DecodeError, PayloadReader

if TYPE_CHECKING:  # late in a process's life: opening a checkpoint does without
    import numpy as np
    import pandas as pd

Plain = Callable[[Any, PayloadReader], Any]


def read_array(content: Any, parts: PayloadReader) -> np.ndarray:
    """Read an array: a known dtype of plain numbers, and exactly the bytes of its shape.

    Raises:
        DecodeError: If it is anything else.
    """
    import numpy as np

    array = content[kinds.ARRAY] if type(content) is dict and content.keys() == {kinds.ARRAY} else None
    if type(array) is not list or len(array) != 3:
        raise DecodeError("An array was expected.")
    dtype, shape, nbytes = array
    if type(dtype) is not str or dtype not in DTYPES or type(shape) is not list or len(shape) > MAX_AXES:
        raise DecodeError("The array is of no known type.")
    if not all(type(size) is int and 0 <= size < 2**48 for size in shape):
        raise DecodeError("The array has no sizes.")
    kind = np.dtype(dtype)
    if nbytes != math.prod(shape) * kind.itemsize:
        raise DecodeError("The array does not have the bytes of its shape.")
    data = parts.take(nbytes)
    if kind == np.bool_ and nbytes and np.frombuffer(data, np.uint8).max() > 1:
        raise DecodeError("A truth value is neither true nor false.")
    return np.frombuffer(data, kind).reshape(shape).copy()


def read_frame(content: Any, parts: PayloadReader, plain: Plain) -> pd.DataFrame:
    """Read a data frame, column by column.

    Raises:
        DecodeError: If its columns are not of one length, or of no known kind.
    """
    import pandas as pd

    frame = content[kinds.FRAME] if type(content) is dict and content.keys() == {kinds.FRAME} else None
    if type(frame) is not list or len(frame) != 2 or type(frame[1]) is not list:
        raise DecodeError("A frame was expected.")
    index = _index(frame[0], parts, plain)
    columns = dict(_named(column, parts, plain) for column in frame[1])
    if len(columns) < len(frame[1]) or any(len(column) != len(index) for column in columns.values()):
        raise DecodeError("The frame's columns do not fit each other.")
    if not columns and len(index) > MAX_VALUES:  # a range takes no bytes, whatever is made of it later
        raise DecodeError("The frame has no columns and too many rows.")
    # As they are: pandas would turn a column of objects that are all texts into texts
    series = {name: pd.Series(column, index=index, dtype=column.dtype) for name, column in columns.items()}
    return pd.DataFrame(series, index=index)


def _named(column: Any, parts: PayloadReader, plain: Plain) -> tuple[str, Any]:
    if type(column) is not list or len(column) != 2 or type(column[0]) is not str:
        raise DecodeError("A column was expected.")
    return column[0], _column(column[1], parts, plain)


def _index(content: Any, parts: PayloadReader, plain: Plain) -> pd.Index:
    import pandas as pd

    if type(content) is not list or len(content) not in {2, 4} or not isinstance(content[0], str | None):
        raise DecodeError("An index was expected.")
    name, *rest = content
    if len(rest) == 1:
        return pd.Index(_column(rest[0], parts, plain), name=name)
    if not all(type(number) is int and abs(number) < 2**48 for number in rest) or not rest[2]:
        raise DecodeError("An index is no range.")
    return pd.RangeIndex(*rest, name=name)


def _column(content: Any, parts: PayloadReader, plain: Plain) -> Any:
    kind, *rest = content if type(content) is list and content else (None,)
    reader, count = COLUMNS.get(kind if type(kind) is str else "", (None, 0))
    if reader is None or len(rest) != count:
        raise DecodeError("A column is of no known kind.")
    return reader(rest, parts, plain)


def _numbers(rest: list[Any], parts: PayloadReader, plain: Plain) -> np.ndarray:
    return _flat(rest[0], parts)


def _texts(rest: list[Any], parts: PayloadReader, plain: Plain) -> Any:
    import pandas as pd

    (texts,) = rest
    if type(texts) is not list or not all(text is None or type(text) is str for text in texts):
        raise DecodeError("A text was expected.")
    return pd.array(texts, dtype="str")


def _objects(rest: list[Any], parts: PayloadReader, plain: Plain) -> Any:
    import numpy as np

    (items,) = rest
    if type(items) is not list:
        raise DecodeError("A list was expected.")
    column = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        column[place] = plain(item, parts)
    return column


def _categories(rest: list[Any], parts: PayloadReader, plain: Plain) -> Any:
    import pandas as pd

    codes, categories, ordered = rest
    numbers = _flat(codes, parts)
    known = pd.Index(_column(categories, parts, plain))
    if numbers.dtype.kind != "i" or not known.is_unique or known.hasnans or type(ordered) is not bool:
        raise DecodeError("Categories are not told apart.")
    if len(numbers) and not -1 <= numbers.min() <= numbers.max() < len(known):
        raise DecodeError("A category is none of those that there are.")
    return pd.Categorical.from_codes(numbers, categories=known, ordered=ordered)


def _masked(rest: list[Any], parts: PayloadReader, plain: Plain) -> Any:
    import pandas as pd

    dtype, values, absent = rest
    numbers, mask = _flat(values, parts), _flat(absent, parts)
    known = type(dtype) is str and MASKED_DTYPES.get(dtype) == numbers.dtype.name
    if not known or mask.dtype.name != "bool" or len(mask) != len(numbers):
        raise DecodeError("Numbers that may be absent do not fit.")
    kinds_of = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
    return kinds_of.get(numbers.dtype.kind, pd.arrays.IntegerArray)(numbers, mask)


def _flat(content: Any, parts: PayloadReader) -> np.ndarray:
    array = read_array(content, parts)
    if array.ndim != 1:
        raise DecodeError("A column has more than one axis.")
    return array


COLUMNS: dict[str, tuple[Callable[[list[Any], PayloadReader, Plain], Any], int]] = {
    kinds.NUMBERS: (_numbers, 1),
    kinds.TEXTS: (_texts, 1),
    kinds.OBJECTS: (_objects, 1),
    kinds.CATEGORIES: (_categories, 3),
    kinds.MASKED: (_masked, 3),
}
