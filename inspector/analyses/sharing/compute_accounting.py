"""Count parameters and bytes by name and once, and put the tables of sharing together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import pandas as pd
import torch

from inspector.analyses.sharing.compute_verdicts import Judgment, SharingEvidence
from inspector.analyses.sharing.result import SharedGroup, SharedMember
from inspector.models.memory import count, count_once, locate
from inspector.text import shape_text


def shared_group(judgment: Judgment, evidence: SharingEvidence, storages: Mapping[str, int]) -> SharedGroup:
    """Put a judged group together, with its sizes and where each of its names lies."""
    tensors = {name: evidence.tensors[name] for name in judgment.names}
    largest = max(tensors.values(), key=lambda tensor: tensor.nbytes)
    parameters = {name: tensors[name] for name in tensors if name in evidence.parameters}
    listed, unique = count(parameters), count_once(parameters)
    return SharedGroup(
        names=judgment.names,
        verdict=judgment.verdict,
        shape=tuple(largest.shape),
        nbytes=largest.nbytes,
        declared=judgment.declared,
        in_file=judgment.stored,
        in_memory=judgment.in_memory,
        reason=judgment.reason,
        file_relation=judgment.file_relation,
        aliases=judgment.aliases,
        listed_parameters=listed[0],
        unique_parameters=unique[0],
        listed_nbytes=listed[1],
        unique_nbytes=unique[1],
        members=tuple(_member(name, evidence, storages) for name in judgment.names),
    )


def _member(name: str, evidence: SharingEvidence, storages: Mapping[str, int]) -> SharedMember:
    tensor = evidence.tensors[name]
    info = (evidence.held or {}).get(name)
    return SharedMember(
        name=name,
        kind=_kind(name, evidence),
        dtype=_dtype(tensor),
        shape=tuple(tensor.shape),
        nbytes=tensor.nbytes,
        storage=storages[name],
        offset=_offset(tensor),
        stride=_stride(tensor),
        stored_as=info.name if info else "",
        file=info.file if info else "",
    )


def number_storages(tensors: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """Name -> number of the storage that it lies on, by first appearance."""
    numbers: dict[object, int] = {}
    return {name: numbers.setdefault(_storage(name, tensor), len(numbers)) for name, tensor in tensors.items()}


def _storage(name: str, tensor: torch.Tensor) -> object:
    """What is equal for two tensors on one storage; without memory each has its own."""
    block = locate(0, name, tensor)
    return name if block is None else (block.space, tensor.untyped_storage().data_ptr())


def tensor_table(groups: Sequence[SharedGroup], evidence: SharingEvidence, storages: Mapping[str, int]) -> pd.DataFrame:
    """One row a parameter, and a shared buffer: results.Sharing.tensors without `row`."""
    # A name in two groups is drawn with the one that really shares memory.
    by_truth = sorted(enumerate(groups), key=lambda item: item[1].in_memory)
    group_of = {name: index for index, group in by_truth for name in group.names}
    held = evidence.held or {}
    return pd.DataFrame(
        [
            {
                "name": name,
                "kind": _kind(name, evidence),
                "shape": shape_text(tensor.shape),
                "dtype": _dtype(tensor),
                "parameters": math.prod(tensor.shape),
                "nbytes": tensor.nbytes,
                "group": group_of.get(name, -1),
                "storage": storages[name],
                "offset": _offset(tensor),
                "stride": ", ".join(map(str, _stride(tensor))),
                "file": held[name].file if name in held else "",
                "file_offset": held[name].begin if name in held else -1,
            }
            for name, tensor in evidence.tensors.items()
            if name in evidence.parameters or name in group_of
        ]
    )


def _kind(name: str, evidence: SharingEvidence) -> Literal["parameter", "buffer"]:
    return "parameter" if name in evidence.parameters else "buffer"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _offset(tensor: torch.Tensor) -> int:
    strided = tensor.layout is torch.strided
    return int(tensor.storage_offset()) * tensor.itemsize if strided else 0


def _stride(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.stride()) if tensor.layout is torch.strided else ()
