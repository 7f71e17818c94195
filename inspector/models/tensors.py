"""Read the numbers of tensors: out of weight files, mapped and not copied, with the storages they were saved on."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np
import torch

from inspector.errors import CheckpointError
from inspector.names import nearest
from inspector.store.manifests.columns import TensorInfo, Tensors, with_zeros
from inspector.store.manifests.manifest import Manifest
from inspector.store.readers.streams import StreamPart

NEAR = 1 << 20  # bytes between two storages that are mapped together


class Reader(Protocol):
    """The numbers of named tensors, however they are stored; one reader may rest on another."""

    @property
    def tensors(self) -> Tensors:
        """Their headers, as whoever reads them sees them."""
        ...

    def stored(self, name: str) -> tuple[TensorInfo, ...]:
        """What of the files a tensor is made of: one of the same name if it is stored plainly."""
        ...

    def read(self, names: Collection[str]) -> dict[str, torch.Tensor]:
        """Read some tensors.

        Returns:
            Name -> tensor on the CPU, in the shape and dtype of its header, in the order of `names`.

        Raises:
            CheckpointError: If one is not known, or its numbers cannot be had.
        """
        ...

    def outline(self, names: Collection[str]) -> dict[str, torch.Tensor]:
        """What `read` gives, on the meta device: shapes, dtypes and storages, and no numbers."""
        ...


@dataclass(frozen=True, slots=True)
class StoredReader:
    """Tensors as the files of a checkpoint have them."""

    manifest: Manifest

    @property
    def tensors(self) -> Tensors:
        """The headers of the files."""
        return self.manifest.tensors

    def stored(self, name: str) -> tuple[TensorInfo, ...]:
        """The tensor itself."""
        return (self.manifest.by_name[name],)

    def read(self, names: Collection[str]) -> dict[str, torch.Tensor]:
        """Map tensors into memory.

        Returns:
            Name -> tensor in the dtype, shape and strides of the file. Tensors that the file keeps on one storage
            share it here. Pages are read when touched; writing to a tensor changes no file (the mapping is private).

        Raises:
            CheckpointError: If a name or a dtype is not known.
        """
        by_file: dict[str, list[TensorInfo]] = {}
        for tensor in self._find(names):
            by_file.setdefault(tensor.file, []).append(tensor)
        read: dict[str, torch.Tensor] = {}
        for name, tensors in by_file.items():
            file, spans = self.manifest.bytes_of(name), _spans(tensors)
            file.need([_limits(chain.from_iterable(span)) for span in spans])
            for span in spans:
                read |= _lay(span, file.map)
        return {name: read[name] for name in names}

    def outline(self, names: Collection[str]) -> dict[str, torch.Tensor]:
        """What `read` gives, on the meta device: two lie on one storage exactly if the file keeps them so."""
        read: dict[str, torch.Tensor] = {}
        for storage in _storages(self._find(names)):
            read |= _lay([storage], None)
        return {name: read[name] for name in names}

    def _find(self, names: Collection[str]) -> list[TensorInfo]:
        by_name = self.manifest.by_name
        if unknown := [name for name in names if name not in by_name]:
            near = nearest(unknown[0], by_name)
            meant = f": did you mean {near!r}?" if near else "."
            raise CheckpointError(
                f"There is no tensor {unknown[0]!r} in {self.manifest.name}{meant} `overview --tensors` lists all "
                f"{len(by_name):,}."
            )
        return [by_name[name] for name in names]


@dataclass(frozen=True, slots=True)
class ZerosReader:
    """What another reader has, and parameters that the model was made without, as the zeros that they count as."""

    base: Reader
    zeros: Mapping[str, tuple[int, ...]]  # name -> shape

    @property
    def tensors(self) -> Tensors:
        """The headers, those of zeros last."""
        return with_zeros(self.base.tensors, self.zeros)

    def stored(self, name: str) -> tuple[TensorInfo, ...]:
        """Nothing, of zeros."""
        return () if name in self.zeros else self.base.stored(name)

    def read(self, names: Collection[str]) -> dict[str, torch.Tensor]:
        """Read some tensors, and make the zeros among them."""
        read = self.base.read([name for name in names if name not in self.zeros])
        return {name: read[name] if name in read else self._make(name, "cpu") for name in names}

    def outline(self, names: Collection[str]) -> dict[str, torch.Tensor]:
        """What `read` gives, on the meta device."""
        read = self.base.outline([name for name in names if name not in self.zeros])
        return {name: read[name] if name in read else self._make(name, "meta") for name in names}

    def _make(self, name: str, device: str) -> torch.Tensor:
        return torch.zeros(self.zeros[name], dtype=_dtype(self.base.tensors[0]), device=device)


def view_numbers(part: StreamPart, data: np.ndarray) -> torch.Tensor:
    """See the bytes of a part that was streamed as its numbers, in one dimension."""
    dtype = _dtype(part.tensor)
    if part.begin % dtype.itemsize:  # torch cannot view at an odd byte
        data = data.copy()
    return torch.from_numpy(data).view(dtype)


def _storages(tensors: Iterable[TensorInfo]) -> list[list[TensorInfo]]:
    storages: dict[tuple[str, str], list[TensorInfo]] = {}
    for tensor in tensors:
        storages.setdefault((tensor.file, tensor.storage), []).append(tensor)
    return list(storages.values())


def _spans(tensors: list[TensorInfo]) -> list[list[list[TensorInfo]]]:
    """The storages of one file, those together that lie side by side: they are mapped at once.

    A system maps some ten thousand pieces for a process, and a file may hold more tensors.
    """
    spans: list[list[list[TensorInfo]]] = []
    reached = -1
    for storage in sorted(_storages(tensors), key=lambda each: _limits(each)[0]):
        begin, end = _limits(storage)
        if not spans or begin - reached > NEAR:
            spans.append([])
        spans[-1].append(storage)
        reached = max(reached, end)
    return spans


def _limits(storage: Iterable[TensorInfo]) -> tuple[int, int]:
    """First byte and one past the last that some tensors of one file cover; 0, 0 for none."""
    filled = [tensor for tensor in storage if math.prod(tensor.shape)]
    return (
        min((tensor.begin for tensor in filled), default=0),
        max((tensor.begin + _extent(tensor) * _dtype(tensor).itemsize for tensor in filled), default=0),
    )


def _lay(span: list[list[TensorInfo]], mapped: Callable[[int, int], np.ndarray] | None) -> dict[str, torch.Tensor]:
    """Lay the tensors of some storages over their bytes; without any, on the meta device."""
    begin, end = _limits(tensor for storage in span for tensor in storage)
    whole = mapped(begin, end) if mapped and end else None
    read: dict[str, torch.Tensor] = {}
    for storage in span:
        first, last = _limits(storage)
        if whole is None:
            data = torch.empty(last - first, dtype=torch.uint8, device="meta" if not mapped else "cpu")
        else:
            data = torch.from_numpy(whole[first - begin : last - begin])
        for tensor in storage:
            read[tensor.name] = _view(tensor, data, tensor.begin - first)
    return read


def _view(tensor: TensorInfo, data: torch.Tensor, offset: int) -> torch.Tensor:
    """One tensor over the bytes of its storage."""
    dtype = _dtype(tensor)
    if not math.prod(tensor.shape):
        return torch.empty(tensor.shape, dtype=dtype, device=data.device)
    if offset % dtype.itemsize:  # torch cannot view at an odd byte: copy this one
        data, offset = data[offset:].clone(), 0
    whole = data[: len(data) - len(data) % dtype.itemsize].view(dtype)
    return whole.as_strided(tensor.shape, tensor.strides, offset // dtype.itemsize)


def _extent(tensor: TensorInfo) -> int:
    """Elements from a tensor's first to its last, both included."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))


def _dtype(tensor: TensorInfo) -> torch.dtype:
    dtype = getattr(torch, tensor.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise CheckpointError(
            f"{tensor.name!r} is stored as {tensor.dtype}, which this version of PyTorch does not support: open a "
            "copy in float32, bfloat16 or float16, if there is one."
        )
    return dtype
