"""Unpickle what PyTorch saves without running anything: the only file that may use pickle.

Every global that a pickle names is looked up in a table of inert stand-ins; any other one ends the
reading. The unpickler is the one in pure Python: it keeps its memo in a dictionary, so that a few
bytes cannot ask for gigabytes, as they can of the one in C. What it does to objects is narrowed:
no state is set on any, sets are read as lists, and only plain values become keys (the hash of a
tuple nested a million deep overflows the stack of the interpreter itself). Work and memory grow
with the bytes that are read and no faster: what a memo hands out again and again is never copied,
never turned into text, and the opcodes that torch has no use for are gone.
"""

from __future__ import annotations

import pickle  # noqa: TID251
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO, Any

from inspector.errors import CheckpointError
from inspector.text import quoted

MAX_PICKLE_NBYTES = 30_000_000  # of names and shapes; the weights lie outside the pickle
MAX_READS = 8_000_000  # torch's pickles take about 60 for each tensor
MAX_DIGITS = 20  # of a memo's number, as text
MAX_MARKS = 100  # open at once; torch's pickles have four
MAX_ARGUMENTS = 10  # of what a pickle calls; torch's have seven at most
MAX_NUMBER = 2**48  # of a key or a memo
MAX_KEY = 80  # characters of a storage's name

# torch's storage class -> (torch's dtype, bytes an element)
STORAGES = {
    "DoubleStorage": ("float64", 8),
    "FloatStorage": ("float32", 4),
    "HalfStorage": ("float16", 2),
    "BFloat16Storage": ("bfloat16", 2),
    "LongStorage": ("int64", 8),
    "IntStorage": ("int32", 4),
    "ShortStorage": ("int16", 2),
    "CharStorage": ("int8", 1),
    "ByteStorage": ("uint8", 1),
    "BoolStorage": ("bool", 1),
    "ComplexFloatStorage": ("complex64", 8),
    "ComplexDoubleStorage": ("complex128", 16),
    "UntypedStorage": ("uint8", 1),
}
ITEMSIZES = dict(STORAGES.values()) | {
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e8m0fnu": 1,
}


@dataclass(frozen=True, slots=True, eq=False)
class StorageType:
    """Stands for a storage class."""

    dtype: str


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """A storage that a pickle refers to; its bytes are elsewhere in the file."""

    key: str
    dtype: str
    numel: int
    first: int  # elements of the root storage before a view's first


@dataclass(frozen=True, slots=True, eq=False)
class Strided:
    """A tensor as its pickle describes it; nothing of it is checked yet."""

    storage: Storage
    dtype: str
    offset: Any
    shape: Any
    strides: Any


@dataclass(frozen=True, slots=True, eq=False)
class _FunctionStandIn:
    """Takes the place of a function of torch, and cannot be changed by a pickle."""

    build: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        return self.build(*arguments)


def _strided(storage: Storage, offset: Any, shape: Any, strides: Any, *_: Any) -> Strided:
    return Strided(storage, storage.dtype, offset, shape, strides)


def _strided_as(
    storage: Storage, offset: Any, shape: Any, strides: Any, _grad: Any, _hooks: Any, dtype: Any, *_: Any
) -> Strided:
    if not isinstance(dtype, str):
        raise pickle.UnpicklingError("no dtype")
    return Strided(storage, dtype, offset, shape, strides)


def _first(data: Any, *_: Any) -> Any:
    return data


def _plain_key(key: Any) -> Any:
    """A key that no other one is likely to collide with.

    A whole number's hash is its remainder by 2**61 - 1, so larger numbers can all have one hash,
    and a dictionary of them takes the square of their count. Those of a checkpoint count parameters.
    """
    if not isinstance(key, str | bytes | int | float | None):
        raise pickle.UnpicklingError("no plain key")
    if isinstance(key, int) and not -MAX_NUMBER < key < MAX_NUMBER:
        raise pickle.UnpicklingError("too large a key")
    return key


def _dict(items: Iterable[Any] = ()) -> dict[Any, Any]:
    return {_plain_key(key): value for key, value in items}


def _ordered_dict(items: Any = ()) -> dict[Any, Any]:
    """What Python 2 saved as a list of pairs; the list is used up, a memo may hand it out again."""
    built = _dict(items)
    if isinstance(items, list):
        items.clear()
    elif built:
        raise pickle.UnpicklingError("no list of pairs")
    return built


def _size(sizes: Any = ()) -> Any:
    if not isinstance(sizes, tuple | list):
        raise pickle.UnpicklingError("no sizes")
    return sizes  # as it is: a copy for each time that a memo hands it out has no end


FUNCTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor"): _strided,
    ("torch._utils", "_rebuild_tensor_v2"): _strided,
    ("torch._utils", "_rebuild_tensor_v3"): _strided_as,
    ("torch._utils", "_rebuild_parameter"): _first,
    ("torch._utils", "_rebuild_parameter_with_state"): _first,
    ("collections", "OrderedDict"): _ordered_dict,
    ("torch", "Size"): _size,
    ("torch", "device"): lambda *_: None,
}


class Unpickler(pickle._Unpickler):  # type: ignore[attr-defined]
    """Reads plain containers, numbers, texts and descriptions of tensors."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        super().__init__(_Limited(file, name), encoding="utf-8")
        self._name = name

    def find_class(self, module: str, name: str) -> Any:
        """Give the stand-in of a global.

        Raises:
            CheckpointError: If it has none.
        """
        if (module, name) in FUNCTIONS:
            return _FunctionStandIn(FUNCTIONS[module, name])
        if module in {"torch", "torch.storage"} and name in STORAGES:
            return StorageType(STORAGES[name][0])
        if module == "torch" and name in ITEMSIZES:
            return name  # a dtype
        if "sparse" in name or name == "_rebuild_nested_tensor":
            raise CheckpointError(
                f"{self._name} contains a tensor that is not strided ({quoted(name)}): save it with dense tensors."
            )
        raise CheckpointError(
            f"{self._name} contains {quoted(f'{module}.{name}')}, which is not a tensor: "
            "nothing in it was run. Save only the weights, with save_pretrained() or "
            "torch.save(model.state_dict(), …)."
        )

    def persistent_load(self, pid: Any) -> Storage:
        """Describe the storage that a tensor lies on."""
        if not isinstance(pid, tuple) or len(pid) not in {5, 6} or pid[0] != "storage":
            raise pickle.UnpicklingError("no storage")
        _, storage, key, _location, numel, *view = pid
        if not isinstance(storage, StorageType) or type(numel) is not int or not _is_key(key):
            raise pickle.UnpicklingError("no storage")
        first = 0
        if view and view[0] is not None:  # files of torch before 0.4
            _, first, numel = view[0]
        return Storage(key, storage.dtype, numel, first)


def _is_key(key: Any) -> bool:
    return isinstance(key, str) and len(key) <= MAX_KEY


def _mark(unpickler: Any) -> None:
    if len(unpickler.metastack) >= MAX_MARKS:
        raise pickle.UnpicklingError("too many marks")
    pickle._Unpickler.load_mark(unpickler)  # type: ignore[attr-defined]


def _call(unpickler: Any) -> None:
    arguments = unpickler.stack.pop()
    function = unpickler.stack[-1]
    callable_here = isinstance(function, _FunctionStandIn) and isinstance(arguments, tuple)
    if not callable_here or len(arguments) > MAX_ARGUMENTS:
        raise pickle.UnpicklingError("no call")
    unpickler.stack[-1] = function(*arguments)


def _remember(unpickler: Any) -> None:
    """Keep a value under a number that is told as text, of any length."""
    digits = unpickler.readline()[:-1]
    if len(digits) > MAX_DIGITS:
        raise pickle.UnpicklingError("too large a number")
    unpickler.memo[_plain_key(int(digits))] = unpickler.stack[-1]


def _skip_frame_length(unpickler: Any) -> None:
    unpickler.read(8)  # what follows is read, and counted, as if it stood in no frame


def _drop_state(unpickler: Any) -> None:
    unpickler.stack.pop()


def _put_item(unpickler: Any) -> None:
    value = unpickler.stack.pop()
    key = unpickler.stack.pop()
    unpickler.stack[-1][_plain_key(key)] = value


def _put_items(unpickler: Any) -> None:
    items = unpickler.pop_mark()
    unpickler.stack[-1].update(_dict(zip(items[::2], items[1::2], strict=True)))


def _add_to_list(unpickler: Any) -> None:
    items = unpickler.pop_mark()
    unpickler.stack[-1].extend(items)


def _list_from_mark(unpickler: Any) -> None:
    items = unpickler.pop_mark()  # first: it puts another stack in place
    unpickler.append(items)


def _dict_from_mark(unpickler: Any) -> None:
    items = unpickler.pop_mark()
    unpickler.append(_dict(zip(items[::2], items[1::2], strict=True)))


# Classes are never made, and buffers outside the pickle are none of torch's.
UNUSED = (
    pickle.INST,
    pickle.OBJ,
    pickle.NEWOBJ,
    pickle.NEWOBJ_EX,
    pickle.EXT1,
    pickle.EXT2,
    pickle.EXT4,
    pickle.BYTEARRAY8,
    pickle.NEXT_BUFFER,
    pickle.READONLY_BUFFER,
    pickle.PERSID,
)
USED = {
    opcode: function
    for opcode, function in pickle._Unpickler.dispatch.items()  # type: ignore[attr-defined]
    if bytes([opcode]) not in UNUSED
}
Unpickler.dispatch = USED | {
    pickle.MARK[0]: _mark,
    pickle.REDUCE[0]: _call,
    pickle.PUT[0]: _remember,
    pickle.FRAME[0]: _skip_frame_length,
    pickle.BUILD[0]: _drop_state,
    pickle.SETITEM[0]: _put_item,
    pickle.SETITEMS[0]: _put_items,
    pickle.DICT[0]: _dict_from_mark,
    pickle.EMPTY_SET[0]: pickle._Unpickler.dispatch[pickle.EMPTY_LIST[0]],  # type: ignore[attr-defined]
    pickle.ADDITEMS[0]: _add_to_list,
    pickle.FROZENSET[0]: _list_from_mark,
}


class _Limited:
    """Hands out a bounded number of bytes."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self._left, self._reads = MAX_PICKLE_NBYTES, MAX_READS

    def read(self, size: int) -> bytes:
        return self._count(self._file.read(min(size, self._left + 1)))

    def readline(self) -> bytes:
        return self._count(self._file.readline(self._left + 1))

    def _count(self, data: bytes) -> bytes:
        self._left -= len(data)
        self._reads -= 1
        if self._left < 0 or self._reads < 0:
            many = f"{MAX_PICKLE_NBYTES:,} bytes" if self._left < 0 else f"{MAX_READS:,} steps"
            raise CheckpointError(
                f"{self._name} needs more than {many} to describe its tensors: check that it is a model's checkpoint."
            )
        return data


def unpickle(file: IO[bytes], name: str) -> Any:
    """Read one pickle from where the file stands.

    Args:
        file: Stands behind the pickle afterwards.

    Returns:
        Plain containers and values, with `Strided` for tensors.

    Raises:
        CheckpointError: If it is broken, or holds anything else.
    """
    try:
        return Unpickler(file, name).load()
    except CheckpointError:
        raise
    except Exception as error:  # whatever hostile bytes make the unpickler do
        raise CheckpointError(
            f"{name} is truncated or broken: its list of tensors cannot be read. Get the file again."
        ) from error
