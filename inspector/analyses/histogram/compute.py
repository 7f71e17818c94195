"""Read the numbers of one tensor and count them by value."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

from inspector.analyses.histogram import words
from inspector.analyses.histogram.request import HistogramRequest
from inspector.analyses.histogram.result import Histogram
from inspector.errors import CheckpointError, NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.quantized.codes import open_codes
from inspector.models.tensors import StoredReader
from inspector.names import nearest
from inspector.progress import Progress
from inspector.request import answers

MOST = 1 << 24  # numbers that are read of a tensor: 64 MB in float32
PIECES = 256  # that are read of a larger one, evenly spaced
BINS = 60

Rows = Callable[[slice], torch.Tensor]


@answers(HistogramRequest)
def histogram(checkpoint: StagedCheckpoint, request: HistogramRequest, *, progress: Progress) -> Histogram:
    """Count the numbers of a tensor by value; quantized weights are dequantized, only the rows that are read.

    Raises:
        CheckpointError: If it has no such tensor, or its file cannot be read.
        NotInCheckpointError: If it holds codes that cannot be read as numbers, or no numbers.
    """
    name = _find(checkpoint, request.tensor)
    progress(None, f"Reading {name}")
    info = checkpoint.tensors.by_name[name]
    quantized = checkpoint.quantized.get(name)
    count = math.prod(info.shape)
    if not count:
        raise NotInCheckpointError(words.EMPTY.format(name=name))
    if info.dtype.startswith("complex"):
        raise NotInCheckpointError(words.COMPLEX.format(name=name))
    values = read_numbers(checkpoint, name)
    counted = _count(values[torch.isfinite(values)])
    return Histogram(
        tensor=name,
        shape=tuple(info.shape),
        dtype=info.dtype,
        file=info.file,
        scheme=quantized.scheme if quantized else "",
        numbers=count,
        read=len(values),
        nan=int(values.isnan().sum()),
        infinite=int(values.isinf().sum()),
        zeros=int((values == 0).sum()),
        **counted._asdict(),
    )


def read_numbers(checkpoint: StagedCheckpoint, name: str, *, most: int = MOST) -> torch.Tensor:
    """Read all numbers of a tensor in its order, or about `most` of them in evenly spaced pieces."""
    rows, height, width = _rows(checkpoint, name)
    return torch.cat([rows(part).reshape(-1) for part in _parts(height, width, most)])


def _find(checkpoint: StagedCheckpoint, asked: str) -> str:
    """The tensor that was asked for, or whose part was; the largest where none was."""
    known = checkpoint.tensors.by_name
    unread = {*checkpoint.unread.codes}
    if not asked:
        readable = [name for name in known if name not in unread]
        if not readable:
            raise NotInCheckpointError(words.NOTHING.format(name=checkpoint.name))
        return max(readable, key=lambda name: math.prod(known[name].shape))
    parts = {part.name: name for name, how in checkpoint.quantized.items() for part in how.parts.values()}
    name = asked if asked in known else parts.get(asked, asked)
    if name in unread:
        raise NotInCheckpointError(words.CODES.format(name=name))
    if name not in known:
        near = nearest(name, known)
        raise CheckpointError(
            f"There is no tensor {name[:120]!r} in {checkpoint.name}"
            + (f": did you mean {near!r}? " if near else ". ")
            + f"`overview --tensors` lists all {len(known):,}."
        )
    return name


def _rows(checkpoint: StagedCheckpoint, name: str) -> tuple[Rows, int, int]:
    """What reads some rows of a tensor, how many there are, and the numbers of one."""
    if name in checkpoint.changed:
        coded = checkpoint.changed[name]
        width = coded.shape[-1]
        return open_codes(StoredReader(checkpoint.manifest), coded).rows, math.prod(coded.shape[:-1]), width
    stored = checkpoint.reader.read([name])[name]
    plain = stored if stored.dim() == 2 and not stored.is_contiguous() else stored.reshape(-1, 1)
    wide = torch.float32 if stored.is_floating_point() and stored.element_size() < 8 else torch.float64
    return lambda part: plain[part].to(wide), plain.shape[0], plain.shape[1]


def _parts(height: int, width: int, most: int) -> Iterator[slice]:
    """All rows, or of many evenly spaced pieces."""
    if height * width <= most:
        yield slice(0, height)
        return
    size = max(most // (PIECES * width), 1)
    pieces = min(PIECES, max(most // (size * width), 1))
    for number in range(pieces):
        begin = (height - size) * number // max(pieces - 1, 1)
        yield slice(begin, begin + size)


class _Counted(NamedTuple):
    """As in `Histogram`."""

    least: float | None = None
    most: float | None = None
    mean: float | None = None
    rms: float | None = None
    edges: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()


def _count(finite: torch.Tensor) -> _Counted:
    """What finite numbers are; of those near the ends of float64, sums and squares would not be finite themselves."""
    if not len(finite):
        return _Counted()
    low, high = float(finite.min()), float(finite.max())
    _, power = math.frexp(max(-low, high))  # a power of two divides exactly
    scaled = torch.ldexp(finite.double(), torch.tensor(-power))
    begin, end = math.ldexp(low, -power), math.ldexp(high, -power)
    if low == high:
        limit = math.ldexp(sys.float_info.max, -power) if power == sys.float_info.max_exp else math.inf
        begin, end = max(begin - 0.5, -limit), min(end + 0.5, limit)
    counts = torch.histc(scaled, BINS, begin, end)
    step = (end - begin) / BINS
    edges = (*(begin + step * place for place in range(BINS)), end)
    mean, rms = float(scaled.mean()), float(torch.linalg.vector_norm(scaled)) / math.sqrt(len(scaled))
    return _Counted(
        low,
        high,
        math.ldexp(mean, power),
        math.ldexp(rms, power),
        tuple(math.ldexp(edge, power) for edge in edges),
        tuple(int(count) for count in counts.tolist()),
    )
