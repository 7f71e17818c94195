"""Read what a PyTorch file holds (.bin, .pt, .pth, .ckpt), in the zip format and the one before it."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from inspector.errors import CheckpointError
from inspector.store.manifests.columns import TensorInfo, Tensors
from inspector.store.readers.pickles import ITEMSIZES, MAX_PICKLE_NBYTES, Storage, Strided, unpickle
from inspector.store.readers.pieces import ZipPieces
from inspector.store.readers.safetensors import (
    MAX_NDIM,
    Header,
    refuse_foreign,
    refuse_huge,
    refuse_long_names,
    refuse_many,
)
from inspector.text import quoted

MAGIC = 0x1950A86A20F9469CFC6C  # first pickle of a file before the zip format
PROTOCOL = 1001
LOCAL_HEADER = b"PK\x03\x04"
LOCAL_NBYTES = 30  # of a zip member's header, before its name
MAX_EXPANSION = 4  # bytes of a tensor per byte of its storage: stride 0 can claim any size
FREE_NBYTES = 1_000_000  # to which that is not applied
WRAPPERS = ("state_dict", "model_state_dict", "model", "module", "net")
MODEL_ARGS = "model_args"  # nanoGPT's settings
KEY = re.compile(r"[0-9A-Za-z_.-]{1,80}")
AS_WEIGHTS = "Save only the weights, with save_pretrained() or torch.save(model.state_dict(), …)."


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a storage's bytes are."""

    begin: int
    nbytes: int


def read_pytorch(path: Path, name: str) -> Header:
    """Read the names, shapes and places of a PyTorch file's tensors; runs and copies nothing.

    Args:
        name: What the checkpoint calls it; goes into every TensorInfo.

    Raises:
        CheckpointError: If the file is broken, lies about its sizes, or holds more than tensors.
    """
    refuse_foreign(path, name)
    with path.open("rb") as file:
        start = file.read(len(LOCAL_HEADER))
        file.seek(0)
        if start == LOCAL_HEADER:
            saved, places = _read_zip(file, name)
        else:
            saved, places = _read_legacy(file, path.stat().st_size, name)
    state, warnings = _state(saved, name)
    tensors = tuple(_tensor(key, value, places, name) for key, value in state.items() if isinstance(value, Strided))
    left_out = [key for key, value in state.items() if not isinstance(value, Strided)]
    if left_out:
        warnings.append(
            f"{name}: ignored {quoted(str(left_out[0]), 40)}"
            f"{f' and {len(left_out) - 1} more' if len(left_out) > 1 else ''} (not tensors)."
        )
    settings = saved.get(MODEL_ARGS) if isinstance(saved, dict) else None
    kept = settings if isinstance(settings, dict) else {}
    return Header(Tensors.of(tensors), {}, tuple(warnings), settings=kept)


def _read_zip(file: IO[bytes], name: str) -> tuple[Any, dict[str, _Place]]:
    try:
        with zipfile.ZipFile(ZipPieces(file, MAX_PICKLE_NBYTES)) as archive:  # type: ignore[arg-type]
            members = {info.filename: info for info in archive.infolist()}
            refuse_many(sum("/data/" in member for member in members), name)
            pickles = [member for member in members if member.endswith("/data.pkl")]
            if any("/code/" in m or m.endswith("/constants.pkl") for m in members):
                raise CheckpointError(
                    f"{name} is a TorchScript archive (code with weights), which never runs here. {AS_WEIGHTS}"
                )
            if len(pickles) != 1:
                raise CheckpointError(
                    f"{name} is a .zip file, but not a PyTorch archive: if it contains the "
                    "checkpoint's files, rename it to .zip."
                )
            prefix = pickles[0].removesuffix("data.pkl")
            _refuse_packed(members, name)
            order = _small_member(archive, f"{prefix}byteorder").strip()
            if "big" in order:
                raise CheckpointError(_big_endian(name))
            if order != "little":
                raise CheckpointError(
                    f"{name} is broken: its byte order is neither little nor big. Get the file again."
                )
            with archive.open(pickles[0]) as data:
                saved = unpickle(data, name)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"{name} is truncated or broken: its PyTorch archive cannot be read. Get the file again."
        ) from error
    data_prefix = f"{prefix}data/"
    places = {
        member.removeprefix(data_prefix): _Place(_data_begin(file, info, name), info.file_size)
        for member, info in members.items()
        if member.startswith(data_prefix)
    }
    _refuse_overlap(places.values(), name)
    return saved, places


def _refuse_overlap(places: Iterable[_Place], name: str) -> None:
    """Refuse parts that lie on the same bytes: a small file would claim any number of weights."""
    end = 0
    for place in sorted(places, key=lambda place: (place.begin, place.nbytes)):
        if place.nbytes and place.begin < end:
            raise CheckpointError(f"{name} is broken: two of its storages overlap. Get the file again.")
        end = max(end, place.begin + place.nbytes)


def _refuse_packed(members: Mapping[str, zipfile.ZipInfo], name: str) -> None:
    for info in members.values():
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise CheckpointError(
                f"{name} contains compressed data ({info.compress_size:,} bytes for "
                f"{info.file_size:,}), which PyTorch never writes: save it again with "
                "torch.save()."
            )


def _small_member(archive: zipfile.ZipFile, member: str) -> str:
    try:
        with archive.open(member) as file:
            return file.read(20).decode("ascii", "replace")
    except KeyError:  # files before torch 2.1 do not say
        return "little"


def _data_begin(file: IO[bytes], info: zipfile.ZipInfo, name: str) -> int:
    """Where a stored member's bytes begin: its own header may be longer than the directory says."""
    file.seek(info.header_offset)
    local = file.read(LOCAL_NBYTES)
    if len(local) < LOCAL_NBYTES or not local.startswith(LOCAL_HEADER):
        raise CheckpointError(f"{name} is broken: one of its records is not where its directory lists it.")
    extra = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    begin = info.header_offset + LOCAL_NBYTES + extra
    file.seek(0, 2)
    if begin + info.file_size > file.tell():
        raise CheckpointError(f"{name} is truncated: its last tensors are missing. Get it again.")
    return begin


def _read_legacy(file: IO[bytes], nbytes: int, name: str) -> tuple[Any, dict[str, _Place]]:
    if file.read(1) != b"\x80":
        raise CheckpointError(
            f"{name} was not written by torch.save(): check that it is the weight file, not an archive or a text file."
        )
    file.seek(0)
    if unpickle(file, name) != MAGIC or unpickle(file, name) != PROTOCOL:
        raise CheckpointError(
            f"{name} is a pickle, but not one that torch.save() writes: nothing in it was run. {AS_WEIGHTS}"
        )
    system = unpickle(file, name)
    if isinstance(system, dict) and system.get("little_endian") is False:
        raise CheckpointError(_big_endian(name))
    saved = unpickle(file, name)
    keys = unpickle(file, name)
    itemsizes = _itemsizes(saved)
    places: dict[str, _Place] = {}
    for key in keys if isinstance(keys, list) else []:
        if not isinstance(key, str):
            raise CheckpointError(f"{name} is broken: its list of storages contains other values. Get the file again.")
        numel = int.from_bytes(file.read(8), "little")
        size = numel * itemsizes.get(key, 1)
        begin = file.tell()
        if begin + size > nbytes:
            raise CheckpointError(f"{name} is truncated: its last tensors are missing. Get it again.")
        places[key] = _Place(begin, size)
        file.seek(begin + size)
    return saved, places


def _itemsizes(saved: Any) -> dict[str, int]:
    """Bytes an element of every storage that is used, by key."""
    found: dict[str, int] = {}
    waiting, seen = [saved], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, Strided) and isinstance(value.storage, Storage):
            found[value.storage.key] = ITEMSIZES[value.storage.dtype]
        elif isinstance(value, dict | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            waiting += value.values() if isinstance(value, dict) else value
    return found


def _big_endian(name: str) -> str:
    return f"{name} was saved on a big-endian machine: save it again on a little-endian one."


def _state(saved: Any, name: str) -> tuple[dict[str, Any], list[str]]:
    """The state dict: what was saved, or what one wrapper around it holds."""
    if isinstance(saved, dict):
        beside = _count_tensors(saved)  # such as nanoGPT's best loss
        for wrapper in WRAPPERS:
            inner = saved.get(wrapper)
            if isinstance(inner, dict) and _count_tensors(inner) > beside:
                warning = f"{name} has its weights under {wrapper!r}; the app reads those."
                return _checked(inner, name), [warning]
        if beside:
            return _checked(saved, name), []
    raise CheckpointError(
        f"{name} does not contain named weights (a state dict) but a {type(saved).__name__}: "
        f"{AS_WEIGHTS[0].lower()}{AS_WEIGHTS[1:]}"
    )


def _count_tensors(values: dict[Any, Any]) -> int:
    return sum(isinstance(value, Strided) for value in values.values())


def _checked(state: dict[Any, Any], name: str) -> dict[str, Any]:
    refuse_many(len(state), name)
    if odd := [key for key in state if not _is_name(key)]:
        kind = type(odd[0]).__name__
        which = quoted(odd[0], 40) if isinstance(odd[0], str) else f"with a value of type {kind}"
        raise CheckpointError(f"{name} names a tensor {which}, which is not a valid name: {AS_WEIGHTS}")
    refuse_long_names(state, name)
    return state


def _is_name(key: Any) -> bool:
    return isinstance(key, str) and not re.search("[\ud800-\udfff]", key)


def _tensor(key: str, strided: Strided, places: Mapping[str, _Place], file: str) -> TensorInfo:
    storage = strided.storage
    itemsize = ITEMSIZES.get(strided.dtype)
    numbers = [strided.offset, getattr(storage, "first", None)]
    if (
        not isinstance(storage, Storage)
        or itemsize is None
        or not KEY.fullmatch(storage.key)
        or not _are_sizes(strided.shape)
        or not _are_sizes(strided.strides)
        or len(strided.shape) != len(strided.strides)
        or not _are_sizes(numbers)
    ):
        raise CheckpointError(
            f"The tensor {quoted(key)} in {file} is not described by dtype, shape and strides: get the file again."
        )
    place = places.get(storage.key)
    if place is None:
        raise CheckpointError(f"The bytes of the tensor {quoted(key)} are missing from {file}: get the file again.")
    shape, strides = tuple(strided.shape), tuple(strided.strides)
    refuse_huge(key, file, shape, itemsize)
    first = strided.offset * itemsize + storage.first * ITEMSIZES[storage.dtype]
    steps = zip(shape, strides, strict=True)
    reach = (1 + sum((size - 1) * stride for size, stride in steps)) * itemsize
    nbytes = math.prod(shape) * itemsize
    if nbytes and first + reach > place.nbytes:
        raise CheckpointError(
            f"The tensor {quoted(key)} in {file} reaches {first + reach:,} bytes into a storage "
            f"of {place.nbytes:,}: get the file again."
        )
    if nbytes > MAX_EXPANSION * max(place.nbytes, FREE_NBYTES):
        raise CheckpointError(
            f"The tensor {quoted(key)} in {file} spreads {place.nbytes:,} bytes over "
            f"{nbytes:,}: make it contiguous and save it again."
        )
    return TensorInfo(
        name=key,
        dtype=strided.dtype,
        shape=shape,
        strides=strides,
        file=file,
        begin=place.begin + (first if nbytes else 0),
        nbytes=nbytes,
        storage=f"{file}:{storage.key}",
        storage_nbytes=place.nbytes,
    )


def _are_sizes(values: Any) -> bool:
    return (
        isinstance(values, list | tuple)
        and len(values) <= MAX_NDIM
        and all(type(value) is int and 0 <= value < 2**63 for value in values)
    )
