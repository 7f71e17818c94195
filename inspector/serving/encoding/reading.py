"""Read a value of an expected class out of bytes that may have been made to deceive."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from inspector.serving.encoding import parts as kinds
from inspector.serving.encoding.frames import read_array, read_frame
from inspector.serving.encoding.parts import DecodeError, PayloadReader, split

Reader = Callable[[Any, PayloadReader], Any]
LATE = {"pd": "pandas", "np": "numpy"}  # names that modules import for type checkers alone
NO_MATCH = "A value is not of the type that was expected."


def decode(data: bytes, *expected: Any) -> Any:
    """Read a value that another process sent.

    Args:
        data: As `encode` wrote it.
        expected: Classes of which it must be one, or `Any`: a plain value, an array, a frame.

    Raises:
        DecodeError: If it is anything else.
    """
    header, parts = split(data)
    try:
        value = _one_of(header, expected, parts)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:  # some libraries' own
        raise error if isinstance(error, DecodeError) else DecodeError(NO_MATCH) from error
    parts.close()
    return value


def _read(content: Any, hint: Any, parts: PayloadReader) -> Any:
    return _reader(hint)(content, parts)


@cache
def _reader(hint: Any) -> Reader:
    """What reads a value of an annotated type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        return lambda content, parts: _one_of(content, arguments, parts)
    if origin in GENERICS:
        return lambda content, parts: GENERICS[origin](content, arguments, parts)
    if origin is Literal:
        return lambda content, parts: _one_word(content, arguments)
    if dataclasses.is_dataclass(hint):
        return lambda content, parts: _object(content, hint, parts)
    found = LEAVES.get(hint) or LIBRARIES.get(f"{hint.__module__}.{hint.__name__}")
    if found is None:
        raise DecodeError(f"Nothing can be read as {hint}.")
    return found


def _one_word(content: Any, words: tuple[str, ...]) -> str:
    if type(content) is not str or content not in words:
        raise DecodeError(NO_MATCH)
    return content


def _one_of(content: Any, hints: tuple[Any, ...], parts: PayloadReader) -> Any:
    """The first of some types that fits; what is looked at tells which, so nothing is read twice."""
    found = next((hint for hint in hints if _may_be(content, hint)), None)
    if found is None:
        raise DecodeError(NO_MATCH)
    return _read(content, found, parts)


def _may_be(content: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if hint in ALIKE:
        return type(content) in ALIKE[hint]
    if dataclasses.is_dataclass(hint):
        said = content.get(kinds.OBJECT) if type(content) is dict else None
        return type(said) is list and bool(said) and said[0] == getattr(hint, "__name__", None)
    return type(content) is dict and KINDS.get(get_origin(hint) or hint, KINDS_OF.get(hint.__name__)) in content


def _object(content: Any, cls: Any, parts: PayloadReader) -> Any:
    name, *values = _list(_inside(content, kinds.OBJECT)) or [None]
    fields = dataclasses.fields(cls)
    if name != cls.__name__ or len(values) != len(fields):
        raise DecodeError(f"{cls.__name__} was expected.")
    hints = _hints(cls)
    return cls(**{field.name: _read(v, hints[field.name], parts) for field, v in zip(fields, values, strict=True)})


@cache
def _hints(cls: type) -> dict[str, Any]:
    module = vars(sys.modules[cls.__module__])
    late = {
        name: import_module(library)
        for name, library in LATE.items()
        if name not in module and any(f"{name}." in str(field.type) for field in dataclasses.fields(cls))
    }
    return get_type_hints(cls, {**module, **late})


def _plain(content: Any, parts: PayloadReader) -> Any:
    """A value of any plain type, and no object."""
    if content is None or type(content) in {bool, int, float, str}:
        return content
    if type(content) is list:
        return [_plain(item, parts) for item in content]
    (kind,) = content if type(content) is dict and len(content) == 1 else (None,)
    if kind not in PLAIN:
        raise DecodeError(NO_MATCH)
    return PLAIN[kind](content, parts)


def _inside(content: Any, kind: str) -> Any:
    if type(content) is not dict or content.keys() != {kind}:
        raise DecodeError(NO_MATCH)
    return content[kind]


def _list(content: Any) -> list[Any]:
    if type(content) is not list:
        raise DecodeError(NO_MATCH)
    return content


def _scalar(*allowed: type) -> Reader:
    def read(content: Any, parts: PayloadReader) -> Any:
        if type(content) not in allowed:
            raise DecodeError(NO_MATCH)
        return content

    return read


def _bytes(content: Any, parts: PayloadReader) -> bytes:
    return bytes(parts.take(_inside(content, kinds.BYTES)))


def _path(content: Any, parts: PayloadReader) -> Path:
    return Path(LEAVES[str](_inside(content, kinds.PATH), parts))


def _complex(content: Any, parts: PayloadReader) -> complex:
    real, imaginary = (LEAVES[float](number, parts) for number in _list(_inside(content, kinds.COMPLEX)))
    return complex(real, imaginary)


def _sequence(content: Any, arguments: tuple[Any, ...], parts: PayloadReader) -> tuple[Any, ...]:
    items = _list(_inside(content, kinds.TUPLE))
    if arguments == (str, Ellipsis) and set(map(type, items)) <= {str}:
        return tuple(items)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_read(item, arguments[0], parts) for item in items)
    if len(items) != len(arguments):
        raise DecodeError(NO_MATCH)
    return tuple(_read(item, hint, parts) for item, hint in zip(items, arguments, strict=True))


def _mapping(content: Any, arguments: tuple[Any, ...], parts: PayloadReader) -> dict[Any, Any]:
    pairs = [_list(pair) for pair in _list(_inside(content, kinds.DICT))]
    hints = arguments or (Any, Any)
    found = {_read(key, hints[0], parts): _read(value, hints[1], parts) for key, value in pairs}
    if len(found) < len(pairs):
        raise DecodeError("A key occurs twice.")
    return found


def _items(content: Any, arguments: tuple[Any, ...], parts: PayloadReader) -> list[Any]:
    return [_read(item, arguments[0], parts) for item in _list(content)]


def _frame(content: Any, parts: PayloadReader) -> Any:
    return read_frame(content, parts, _plain)


ALIKE: dict[Any, set[type]] = {type(None): {type(None)}, bool: {bool}, int: {int}, float: {float, int}, str: {str}}
LEAVES: dict[Any, Reader] = {
    Any: _plain,
    bytes: _bytes,
    Path: _path,
    complex: _complex,
    **{kind: _scalar(*alike) for kind, alike in ALIKE.items()},
}
LIBRARIES: dict[str, Reader] = {"numpy.ndarray": read_array, "pandas.DataFrame": _frame}
GENERICS: dict[Any, Callable[[Any, tuple[Any, ...], PayloadReader], Any]] = {
    tuple: _sequence,
    list: _items,
    dict: _mapping,
}
PLAIN: dict[Any, Reader] = {
    kinds.TUPLE: lambda content, parts: _sequence(content, (Any, ...), parts),
    kinds.DICT: lambda content, parts: _mapping(content, (), parts),
    kinds.SET: lambda content, parts: set(_plain(_inside(content, kinds.SET), parts)),
    kinds.FROZEN: lambda content, parts: frozenset(_plain(_inside(content, kinds.FROZEN), parts)),
    kinds.BYTES: _bytes,
    kinds.PATH: _path,
    kinds.COMPLEX: _complex,
    kinds.ARRAY: read_array,
    kinds.FRAME: _frame,
}
KINDS: dict[Any, str] = {  # in a union
    tuple: kinds.TUPLE,
    dict: kinds.DICT,
    bytes: kinds.BYTES,
    complex: kinds.COMPLEX,
    Path: kinds.PATH,
}
KINDS_OF = {"ndarray": kinds.ARRAY, "DataFrame": kinds.FRAME}
