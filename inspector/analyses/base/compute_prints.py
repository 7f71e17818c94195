"""Take the print of a checkpoint: sampled numbers of some of its matrices, at places that do not depend on it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from inspector.analyses.base import words
from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.quantized.codes import open_codes
from inspector.models.tensors import StoredReader
from inspector.store.manifests.columns import TensorInfo, is_buffer

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
    """Sample matrices; which ones, their names decide, so that two checkpoints of one model have the same ones.

    Raises:
        NotInCheckpointError: If there is none that can be read.
    """
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
