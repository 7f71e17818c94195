"""Take the print of a checkpoint: sampled numbers of some of its matrices, at places that do not depend on it."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from inspector.analyses.base import words
from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.quantized.codes import open_codes
from inspector.models.tensors import StoredReader
from inspector.store.keeping.arrays import ArrayCache
from inspector.store.keeping.quota import trim
from inspector.store.manifests.columns import TensorInfo, is_buffer
from inspector.store.manifests.entries import results_folder

VERSION = 1  # raise it when the same checkpoint gives another print
SIDE = 32  # rows and columns of a sample
MOST = 60  # matrices: with float32 numbers of 32 × 32, 240 KB
LEAST = 8  # rows and columns that a matrix has at least
NUMBER = re.compile(r"\d+")
LAST = b"\xff" * hashlib.sha256().digest_size  # place of a matrix, the last
ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}  # of a number, in itself
LEAST_ROUNDING = {"float16": 2.0**-25}  # of any number: the smallest ones have fewer digits


@dataclass(frozen=True, slots=True)
class Sample:
    """A matrix, and some of its numbers."""

    name: str
    shape: tuple[int, int]  # all axes but the last are its rows
    numbers: torch.Tensor  # (rows, columns) of at most 32 each, float32
    rounding: float  # how far a number may be from another dtype's, in itself
    least_rounding: float  # likewise, how far at least, however small the number

    @property
    def steps(self) -> tuple[int, int]:
        """Between two sampled rows, and columns."""
        return _step(self.shape[0]), _step(self.shape[1])


@dataclass(frozen=True, slots=True)
class Print:
    """What a checkpoint is told by."""

    samples: Mapping[str, Sample]  # by name

    @property
    def reach(self) -> bytes:
        """The last place in the order of matrices up to which all are sampled."""
        return max(map(_digest, self.samples)) if len(self.samples) == MOST else LAST

    def within(self, reach: bytes) -> int:
        """How many samples lie up to a place."""
        return sum(_digest(name) <= reach for name in self.samples)


def read_print(checkpoint: StagedCheckpoint) -> Print:
    """Sample matrices, or take what was kept of them; names decide which ones, the same in all checkpoints of a model.

    Raises:
        NotInCheckpointError: If there is none that can be read.
    """
    folder = results_folder(checkpoint.manifest.fingerprint, settings=checkpoint.settings)
    cache = ArrayCache(folder, after_put=partial(trim, checkpoint.settings))
    key = {"what": "print", "version": VERSION, "fingerprint": checkpoint.manifest.fingerprint}
    arrays = cache.get(key)
    if arrays is not None:
        return _from_arrays(arrays)
    made = _sampled(checkpoint)
    cache.put(key, _to_arrays(made))
    return made


def _to_arrays(made: Print) -> dict[str, np.ndarray]:
    """A print for the disk: the numbers of all samples behind each other."""
    told = [(each.name, each.shape, [*each.numbers.shape], each.rounding, each.least_rounding)
            for each in made.samples.values()]  # fmt: skip
    numbers = torch.cat([each.numbers.flatten() for each in made.samples.values()])
    return {"numbers": numbers.numpy(), "told": np.array(json.dumps(told))}


def _from_arrays(arrays: Mapping[str, np.ndarray]) -> Print:
    """A print from the disk."""
    told = json.loads(str(arrays["told"]))
    sizes = [math.prod(taken) for _, _, taken, _, _ in told]
    numbers = torch.from_numpy(arrays["numbers"]).split(sizes)
    return Print(
        {
            name: Sample(name, (shape[0], shape[1]), each.reshape(taken), rounding, least)
            for (name, shape, taken, rounding, least), each in zip(told, numbers, strict=True)
        }
    )


def _sampled(checkpoint: StagedCheckpoint) -> Print:
    usable = [each for each in checkpoint.tensors if _is_matrix(each) and each.name not in checkpoint.unread.codes]
    if not usable:
        raise NotInCheckpointError(words.NO_MATRICES.format(name=checkpoint.name))
    chosen = sorted(usable, key=lambda each: (_digest(each.name), each.name))[:MOST]
    return Print({each.name: _sample(checkpoint, each) for each in chosen})


def part_of(name: str) -> str:
    """What stays of a name where a prefix is added or left out: its end, and its numbers."""
    return f"{'.'.join(name.split('.')[-2:])} {' '.join(NUMBER.findall(name))}"


def _digest(name: str) -> bytes:
    return hashlib.sha256(part_of(name).encode()).digest()


def _is_matrix(tensor: TensorInfo) -> bool:
    if len(tensor.shape) < 2 or is_buffer(tensor) or "float" not in tensor.dtype:
        return False
    return tensor.shape[-1] >= LEAST and math.prod(tensor.shape[:-1]) >= LEAST


def _sample(checkpoint: StagedCheckpoint, tensor: TensorInfo) -> Sample:
    shape = math.prod(tensor.shape[:-1]), tensor.shape[-1]
    rows, columns = _places(shape[0]), _places(shape[1])
    if coded := checkpoint.quantized.get(tensor.name):
        opened = open_codes(StoredReader(checkpoint.manifest), coded)
        numbers = torch.cat([opened.rows(slice(row, row + 1)).reshape(1, -1) for row in rows])[:, columns]
    else:
        numbers = checkpoint.read([tensor.name])[tensor.name].reshape(shape)[rows][:, columns]
    rounding, least = (table.get(tensor.dtype, 0.0) for table in (ROUNDING, LEAST_ROUNDING))
    return Sample(tensor.name, shape, numbers.float(), rounding, least)


def _step(count: int) -> int:
    """A power of two, so that a matrix that got some rows more is sampled at the same places."""
    return 1 << max(0, (count // SIDE).bit_length() - 1)


def _places(count: int) -> list[int]:
    return list(range(0, count, _step(count)))[:SIDE]
