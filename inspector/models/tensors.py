"""Read tensors out of weight files, mapped and not copied, with the storages they were saved on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from inspector.errors import CheckpointError
from inspector.store.manifest import Manifest, TensorInfo


def read_tensors(manifest: Manifest, names: Iterable[str] | None = None) -> dict[str, torch.Tensor]:
    """Map tensors of a checkpoint into memory.

    Args:
        manifest: The staged checkpoint.
        names: Tensors to read; None: all of them.

    Returns:
        Name -> tensor on the CPU, in the dtype, shape and strides of the file. Tensors that the
        file keeps on one storage share it here. Pages are read when touched; writing to a tensor
        changes no file (the mapping is private).

    Raises:
        CheckpointError: If a name or a dtype is not known.
    """
    by_name = {tensor.name: tensor for tensor in manifest.tensors}
    wanted = list(by_name) if names is None else list(names)
    if unknown := [name for name in wanted if name not in by_name]:
        raise CheckpointError(
            f"There is no tensor {unknown[0]!r} in {manifest.name}: pick one of the listed names."
        )
    paths = {file.name: file.path for file in manifest.files}
    storages: dict[tuple[str, str], list[TensorInfo]] = {}
    for name in wanted:
        tensor = by_name[name]
        storages.setdefault((tensor.file, tensor.storage), []).append(tensor)
    read: dict[str, torch.Tensor] = {}
    for (file, _), tensors in storages.items():
        read |= _read_storage(paths[file], tensors)
    return {name: read[name] for name in wanted}


def _read_storage(path: Path, tensors: list[TensorInfo]) -> dict[str, torch.Tensor]:
    """Map the span of one storage that these tensors cover, and lay the tensors over it."""
    filled = [tensor for tensor in tensors if math.prod(tensor.shape)]
    read = {
        tensor.name: torch.empty(tensor.shape, dtype=_dtype(tensor))
        for tensor in tensors
        if not math.prod(tensor.shape)
    }
    if not filled:
        return read
    begin = min(tensor.begin for tensor in filled)
    end = max(tensor.begin + _extent(tensor) * _dtype(tensor).itemsize for tensor in filled)
    mapped = np.memmap(path, dtype=np.uint8, mode="c", offset=begin, shape=(end - begin,))
    span = torch.from_numpy(mapped)
    for tensor in filled:
        dtype = _dtype(tensor)
        offset = tensor.begin - begin
        if offset % dtype.itemsize:  # torch cannot view at an odd byte: copy this one
            span_of = torch.from_numpy(np.array(mapped[offset : end - begin]))
            offset = 0
        else:
            span_of = span
        whole = span_of[: len(span_of) - len(span_of) % dtype.itemsize].view(dtype)
        read[tensor.name] = whole.as_strided(tensor.shape, tensor.strides, offset // dtype.itemsize)
    return read


def _extent(tensor: TensorInfo) -> int:
    """Elements from a tensor's first to its last, both included."""
    return 1 + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True)
    )


def _dtype(tensor: TensorInfo) -> torch.dtype:
    dtype = getattr(torch, tensor.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise CheckpointError(
            f"{tensor.name!r} is stored as {tensor.dtype}, which this version of PyTorch does not "
            "know: convert the checkpoint to float32, bfloat16 or float16."
        )
    return dtype
