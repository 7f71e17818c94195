"""What a staged checkpoint holds, as read from its headers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file of a checkpoint."""

    name: str  # basename, as the checkpoint calls it
    format: str  # "safetensors", "pytorch", "json", "text", "sentencepiece"
    nbytes: int
    sha256: str | None  # hex digest of the whole file; None: not computed yet
    path: Path  # where its bytes are: in the staged folder, or in the folder that was opened
    quick: str | None = None  # hashing's digest of a large local file; None: the SHA-256 tells
    # Of a file that is not the store's: time of its last change in ns, and inode
    stamp: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def digest(self) -> str:
        """What tells this file from others."""
        return self.quick or self.sha256 or ""


class TensorInfo(NamedTuple):
    """One named tensor of a weight file; its bytes are read only when they are asked for.

    A tuple, as a checkpoint may have a hundred thousand: it is made in a fifth of a data class' time.
    """

    name: str
    dtype: str  # torch's name: "float32", "bfloat16", "int64", ...
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements, as torch counts them
    file: str  # FileInfo.name
    begin: int  # absolute byte offset in the file of the tensor's first element
    nbytes: int  # numel * itemsize
    storage: str  # equal for two tensors exactly if they were saved on one storage
    storage_nbytes: int  # size of that storage


# What files store although no gradient ever changes it.
BUFFERS = (
    ".position_ids",
    ".attn.masked_bias",
    ".rotary_emb.inv_freq",
    ".embeddings.token_type_ids",
    ".e_score_correction_bias",  # DeepSeek-V3's: set from how often experts are chosen, without a gradient
)


def is_buffer(tensor: TensorInfo) -> bool:
    """Whether a stored tensor is a constant table and no parameter."""
    mask = tensor.name.endswith(".attn.bias") and len(tensor.shape) == 4
    return mask or f".{tensor.name}".endswith(BUFFERS)


def stored_once(tensors: Iterable[TensorInfo]) -> list[TensorInfo]:
    """Leave out tensors that lie on the bytes of another one."""
    seen: dict[tuple[object, ...], TensorInfo] = {}
    for tensor in tensors:
        seen.setdefault(tensor[4:8], tensor)  # file, begin, nbytes, storage
    return list(seen.values())


def count_numbers(tensors: Iterable[TensorInfo]) -> int:
    """How many numbers tensors hold, as they are stored."""
    return sum(map(math.prod, map(attrgetter("shape"), tensors)))


def count_by_dtype(tensors: Iterable[TensorInfo]) -> dict[str, int]:
    """How many numbers are stored in each dtype."""
    counts: Counter[str] = Counter()
    for (dtype, shape), count in Counter(map(attrgetter("dtype", "shape"), tensors)).items():
        counts[dtype] += count * math.prod(shape)
    return dict(counts)


@dataclass(frozen=True)
class Manifest:
    """A staged checkpoint: where its files are and what their headers say.

    `folder` holds config.json and tokenizer files rebuilt from allow-listed keys: nothing else
    may be given to transformers. Weight files are read through `tensors` only.
    """

    fingerprint: str  # sha256 hex over the sorted (name, digest) of the files
    name: str  # what the person calls it
    source: str  # "demo", "upload", "folder" or "hub"
    folder: Path
    files: tuple[FileInfo, ...]  # sorted by name
    tensors: tuple[TensorInfo, ...]  # in file order, shards in name order
    aliases: dict[str, str]  # name listed only in safetensors metadata -> stored name
    config: dict[str, Any] | None  # rebuilt config; None when there is no config.json
    warnings: tuple[str, ...]
    # What config.json says of how its codes are to be read, and nothing else of it: configs.FACTS
    quantization: dict[str, Any] = field(default_factory=dict)

    @property
    def by_content(self) -> bool:
        """Whether every byte counts for the fingerprint: equal files have equal ones, anywhere."""
        return not any(file.quick for file in self.files)

    @cached_property
    def by_name(self) -> Mapping[str, TensorInfo]:
        """The tensors by name: there may be a hundred thousand, and each weight is asked for by itself."""
        return {tensor.name: tensor for tensor in self.tensors}

    @cached_property
    def stored(self) -> list[TensorInfo]:
        """The weights, each place in a file once."""
        return stored_once(tensor for tensor in self.tensors if not is_buffer(tensor))

    @cached_property
    def paths(self) -> Mapping[str, Path]:
        """Where each file is, by its name."""
        return {file.name: file.path for file in self.files}


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """One entry of the list of uploads."""

    fingerprint: str
    name: str
    nbytes: int
    created: str  # ISO 8601, UTC
    pinned: bool = False  # True: never removed to make room
