"""Read the header of a safetensors file, and believe nothing that the file cannot hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.store.manifests.columns import TensorInfo, Tensors
from inspector.store.names import is_text
from inspector.store.readers.jsons import parse_json, refuse_many_values
from inspector.text import quoted

MAX_TENSORS = 100_000
MAX_HEADER_NBYTES = 250 * MAX_TENSORS  # the format allows four times as many
MAX_NDIM = 64
METADATA = "__metadata__"  # a key of the header that is no tensor
MAX_NAME = 1_000  # characters
SHAPES = 1_000  # that are remembered: a model has few, and up to a hundred thousand tensors of them

# safetensors' name -> (torch's name, bytes an element)
DTYPES = {
    "BOOL": ("bool", 1),
    "U8": ("uint8", 1),
    "I8": ("int8", 1),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "F8_E8M0": ("float8_e8m0fnu", 1),
    "I16": ("int16", 2),
    "U16": ("uint16", 2),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "I32": ("int32", 4),
    "U32": ("uint32", 4),
    "F32": ("float32", 4),
    "I64": ("int64", 8),
    "U64": ("uint64", 8),
    "F64": ("float64", 8),
    "C64": ("complex64", 8),
}
_FOREIGN = {
    b"version https://git-lfs": (
        "is a Git LFS pointer, not the weights: run `git lfs pull` where it came from, or download the file itself."
    ),
    b"<!DOCTYPE": "is a web page, not the weights: download the file itself.",
    b"<html": "is a web page, not the weights: download the file itself.",
}


@dataclass(frozen=True, slots=True)
class Header:
    """What the header of one weight file says."""

    tensors: Tensors  # in file order
    aliases: dict[str, str]  # name listed only in the metadata -> name of the stored tensor
    warnings: tuple[str, ...] = ()
    blocks: Mapping[str, str] = field(default_factory=dict)  # tensor -> the type of its ggml blocks, if it has any
    # That lie beside the weights, unchecked: MODEL_ARGS of PyTorch's files, the metadata of GGUF's
    settings: Mapping[str, Any] = field(default_factory=dict, kw_only=True)


def refuse_foreign(path: Path, name: str) -> None:
    """Refuse what is no weight file at all: empty, a Git LFS pointer, a web page.

    Raises:
        CheckpointError: Saying which of them it is.
    """
    with path.open("rb") as file:
        head = file.read(32)
    if not head:
        raise CheckpointError(f"{name} is empty: the copy was cut off. Get the file again.")
    for start, what in _FOREIGN.items():
        if head.lower().startswith(start.lower()):
            raise CheckpointError(f"{name} {what}")


def read_safetensors(path: Path, name: str) -> Header:
    """Read the header of a safetensors file.

    Args:
        name: What the checkpoint calls it; goes into every TensorInfo.

    Raises:
        CheckpointError: If the header is not one, or lies about what the file holds.
    """
    refuse_foreign(path, name)
    file_nbytes = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if file_nbytes < 8 or length > file_nbytes - 8:
            raise CheckpointError(
                f"{name} is truncated or not a safetensors file: its header should have "
                f"{length:,} bytes, but the file has {file_nbytes:,}. Get the file again."
            )
        if length > MAX_HEADER_NBYTES:
            raise CheckpointError(
                f"The header of {name} has {length:,} bytes, more than the limit of "
                f"{MAX_HEADER_NBYTES:,}: check that it is a model's checkpoint."
            )
        data = file.read(length)
    refuse_many(data.count(b"{") - 1, name)  # one object a tensor, counted before any is built
    refuse_many_values(data, f"the header of {name}")
    header = parse_json(data, f"the header of {name}")
    if not isinstance(header, dict):
        raise CheckpointError(f"The header of {name} is not an object: get the file again.")
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError(
            f"The metadata in the header of {name} is not an object of texts, so no library loads the file: get the "
            "file again."
        )
    if not header:
        raise CheckpointError(f"{name} contains no tensors: its header is empty. Check that it is the right file.")
    refuse_many(len(header), name)
    refuse_long_names(header, name)
    start = 8 + len(data)
    tensors = sorted(
        (_tensor(key, entry, name, start) for key, entry in header.items()), key=attrgetter("begin", "nbytes")
    )
    _refuse_gaps(tensors, name, start, file_nbytes)
    return Header(Tensors.of(tensors), _aliases(metadata, header))


def refuse_long_names(names: Iterable[str], file: str) -> None:
    """Refuse names that no page could show.

    Raises:
        CheckpointError: Naming the first such tensor by its beginning, and how long its name is.
    """
    for name in names:
        if len(name) > MAX_NAME:
            raise CheckpointError(
                f"{file} names a tensor {quoted(name, 20)} with {len(name):,} characters, more "
                f"than the limit of {MAX_NAME:,}: check that it is a file of weights."
            )


def refuse_huge(tensor: str, file: str, shape: Sequence[int], itemsize: int) -> None:
    """Refuse a shape that cannot be counted in 63 bits, an empty one with such a size too.

    Raises:
        CheckpointError: Naming the tensor.
    """
    if _is_huge(tuple(shape), itemsize):
        raise CheckpointError(
            f"The tensor {quoted(tensor)} in {file} has a shape that is too large for any memory: get the file again."
        )


def _is_huge(shape: tuple[int, ...], itemsize: int) -> bool:
    """Whether a shape cannot be counted, an empty size taken as one."""
    return math.prod(max(size, 1) for size in shape) * itemsize >= 2**63


@lru_cache(maxsize=SHAPES)
def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides that torch gives a contiguous tensor, in elements."""
    sizes = [max(size, 1) for size in reversed(shape[1:])]
    return tuple(itertools.accumulate(sizes, lambda a, b: a * b, initial=1))[::-1] if shape else ()


def _tensor(key: str, entry: Any, file: str, start: int) -> TensorInfo:
    try:
        key.encode()
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"The header of {file} does not describe the tensor {quoted(key)} "
            "by dtype, shape and offsets: get the file again."
        ) from error
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise CheckpointError(
            f"The tensor {quoted(key)} in {file} has the dtype {quoted(str(dtype))}, which is "
            "not supported: open a copy in float32, bfloat16 or float16, if there is one."
        )
    kind = _kind(dtype, shape) if _is_size(begin) and _is_size(end) else None
    if kind is None:
        raise CheckpointError(
            f"The tensor {quoted(key)} in {file} has a shape or offsets that are not sizes: get the file again."
        )
    torch_dtype, sizes, strides, nbytes = kind
    if end - begin != nbytes:
        refuse_huge(key, file, sizes, DTYPES[dtype][1])
        raise CheckpointError(
            f"The tensor {quoted(key)} in {file} should have {nbytes:,} bytes by its shape, but "
            f"has {end - begin:,} by its offsets: get the file again."
        )
    return TensorInfo(key, torch_dtype, sizes, strides, file, start + begin, nbytes, f"{file}:{key}", nbytes)


def refuse_many(count: int, name: str) -> None:
    """Refuse a file that lists more tensors than a model has.

    Raises:
        CheckpointError: If it does.
    """
    if count > MAX_TENSORS:
        raise CheckpointError(
            f"{name} lists {count:,} tensors, more than the limit of {MAX_TENSORS:,}: check that "
            "it is a model's checkpoint."
        )


def _kind(dtype: str, shape: Any) -> tuple[str, tuple[int, ...], tuple[int, ...], int] | None:
    """What tensors of a dtype and shape have in common: torch's dtype, sizes, strides, bytes; None: no sizes."""
    if not isinstance(shape, list) or len(shape) > MAX_NDIM:
        return None
    try:
        return _known_kind(dtype, *shape)
    except TypeError:  # one of them is a list
        return None


@lru_cache(maxsize=SHAPES, typed=True)  # True equals 1, and is no size
def _known_kind(dtype: str, *sizes: Any) -> tuple[str, tuple[int, ...], tuple[int, ...], int] | None:
    if not all(map(_is_size, sizes)):
        return None
    torch_dtype, itemsize = DTYPES[dtype]
    nbytes = -1 if _is_huge(sizes, itemsize) else math.prod(sizes) * itemsize  # then no offsets fit
    return torch_dtype, sizes, contiguous_strides(sizes), nbytes


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63  # True is no size


def _refuse_gaps(tensors: list[TensorInfo], name: str, start: int, file_nbytes: int) -> None:
    end = start
    for tensor in tensors:
        if tensor.begin != end:
            relation = "overlaps another" if tensor.begin < end else "leaves a gap before it"
            raise CheckpointError(f"The tensor {quoted(tensor.name)} in {name} {relation}: get the file again.")
        end += tensor.nbytes
    if end > file_nbytes:
        raise CheckpointError(
            f"{name} is truncated: its header lists {end - start:,} bytes of weights, but only "
            f"{file_nbytes - start:,} are there. Get the file again."
        )
    if end < file_nbytes:
        raise CheckpointError(
            f"{name} has {file_nbytes - end:,} bytes after its last tensor that no header "
            "describes: get the file again."
        )


def _aliases(metadata: dict[str, str], header: Collection[str]) -> dict[str, str]:
    return {
        removed: kept
        for removed, kept in metadata.items()
        if removed not in header
        and len(removed) <= MAX_NAME
        and is_text(removed)
        and removed != "format"  # its value is a framework's name, not a tensor's
        and kept in header
    }
