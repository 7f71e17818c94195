"""Read the tensors of two checkpoints side by side, a bounded piece at a time, and compare the pieces."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from inspector.analyses.compare.compute_parts import PairFacts, StoredTensor
from inspector.analyses.compare.compute_sums import compare_bits, compare_numbers
from inspector.analyses.compare.result import FLOATS
from inspector.models.placing.threads import single_threaded
from inspector.models.quantized.codes import Dequantizer, open_codes
from inspector.models.tensors import StoredReader, view_numbers
from inspector.progress import Pace, Progress
from inspector.store.copies import is_packed
from inspector.store.readers import streams
from inspector.store.readers.streams import Row, StreamPart, sampled_parts, stream_together, work_ahead

BLOCK = 1 << 18  # numbers that are dequantized at once, of each
HALF = 1.001  # of what separates two codes: numbers that lie between them fall either way


Two = tuple[StoredTensor, StoredTensor]
Key = tuple[tuple[Any, ...], ...]  # where both lie
Looked = Generator[tuple[Key, PairFacts]]


@dataclass(frozen=True, slots=True)
class _Walk:
    """What all pairs are read with."""

    found: dict[Key, PairFacts]  # so far
    pace: Pace
    most: int | None  # bytes of a tensor, from all over it; None: all of them
    piece: int  # bytes of a tensor that a thread reads at once


def find_differences(
    pairs: Sequence[Two], progress: Progress, *, sample: bool = False, piece: int = streams.PIECE
) -> list[PairFacts]:
    """Compare pairs of tensors of one shape, those of the same bytes once.

    Args:
        pairs: Of the same two checkpoints each; both readable, or of one dtype.
        sample: Read evenly spaced parts of each, about a gigabyte of either checkpoint in all.
        piece: Bytes of a tensor that a thread reads at once; no less than a page of a sample.

    Returns:
        What was found of each pair; the sums of a sample are those that the whole pair would have.

    Raises:
        CheckpointError: If a file cannot be read, or has changed.
    """
    ways: defaultdict[Any, dict[Key, Two]] = defaultdict(dict)
    found: dict[Key, PairFacts] = {}
    for pair in pairs:
        ways[_way(*pair)][_key(pair)] = pair
        found[_key(pair)] = PairFacts()
    whole = {key: pair for way in ways.values() for key, pair in way.items()}
    most = None
    if sample:
        most = min(max(streams.SAMPLED_NBYTES // max(1, len(whole)), streams.PAGE), streams.PAGES * streams.PAGE)
    total = sum(min(each.nbytes, most or each.nbytes) for pair in whole.values() for each in pair)
    pace = Pace(progress, "Comparing a sample of the numbers" if sample else "Comparing every number", total)
    walk = _Walk(found, pace, most, piece)
    with single_threaded():
        for way, held in ways.items():
            for key, more in way(held, walk):
                found[key].add(more)
    for key, (one, _) in whole.items() if sample else ():
        found[key].sums.scale(math.prod(one.info.shape) / max(1, found[key].read))
    return [found[_key(pair)] for pair in pairs]


def _way(one: StoredTensor, other: StoredTensor) -> Any:
    if one.changed or other.changed:
        return _dequantized
    if is_packed(one.info) and is_packed(other.info) and one.info.strides == other.info.strides:
        return _side_by_side
    return _mapped  # another order, or gaps: only old .bin files


def _key(pair: Two) -> Key:
    return tuple(each.place for each in pair)


def _side_by_side(pairs: Mapping[Key, Two], walk: _Walk) -> Looked:
    """Compare what lies in one order in both, as the files have it."""
    if not pairs:
        return
    two = next(iter(pairs.values()))
    names = {_key(pair): pair[0].readable for pair in pairs.values()}

    def unknown() -> Iterator[Row]:
        """Leave out the rest of a tensor that is known to differ, where no more than that is asked."""
        for row in _rows(pairs.values(), walk):
            key = tuple(part.tensor.place for part in row)
            if names[key] or walk.found[key].equal:
                yield row
            else:
                walk.pace.add(sum(part.nbytes for part in row))

    manifests = [each.manifest for each in two]
    for row, found in stream_together(manifests, unknown(), _compare_parts, piece=walk.piece):
        yield tuple(part.tensor.place for part in row), found
        walk.pace.add(sum(part.nbytes for part in row))


def _rows(pairs: Iterable[Two], walk: _Walk) -> Iterator[Row]:
    """The same numbers of both; of what is compared for equality alone, pages all over it first."""
    for one, other in sorted(pairs, key=lambda pair: (pair[0].info.file, pair[0].info.begin)):
        numbers = math.prod(one.info.shape)
        if not numbers:
            continue
        size, other_size = one.info.nbytes // numbers, other.info.nbytes // numbers
        count = max(1, walk.piece // max(size, other_size))
        if walk.most or not one.readable:
            for part in sampled_parts([one.info], nbytes=walk.most or streams.SAMPLED_NBYTES, piece=walk.piece):
                begin, more = part.place // size, part.nbytes // size
                yield part, StreamPart(other.info, begin * other_size, more * other_size)
        for begin in range(0, 0 if walk.most else numbers, count):
            more = min(count, numbers - begin)
            yield (
                StreamPart(one.info, begin * size, more * size),
                StreamPart(other.info, begin * other_size, more * other_size),
            )


def _compare_parts(row: Row, data: tuple[np.ndarray, ...]) -> PairFacts:
    if row[0].tensor.dtype in FLOATS and row[1].tensor.dtype in FLOATS:
        return compare_numbers(*map(view_numbers, row, data))
    found = compare_bits(*map(torch.from_numpy, data))
    found.read = found.read * math.prod(row[0].tensor.shape) // row[0].tensor.nbytes  # of bytes
    return found


def _mapped(pairs: Mapping[Key, Two], walk: _Walk) -> Looked:
    """Compare tensors whose numbers lie in different orders in the files, some rows at a time."""
    for key, (one, other) in pairs.items():
        compare = compare_numbers if one.readable else compare_bits
        pieces = list(zip(_split(one), _split(other), strict=True))
        for place in _spread(len(pieces), walk.most and walk.most // BLOCK):
            a, b = pieces[place]
            yield key, compare(a.reshape(-1), b.reshape(-1))
            walk.pace.add((one.nbytes + other.nbytes) // len(pieces))


def _split(stored: StoredTensor) -> tuple[torch.Tensor, ...]:
    name = stored.info.name
    tensor = torch.atleast_1d(StoredReader(stored.manifest).read([name])[name])
    return tensor.split(max(1, BLOCK * len(tensor) // max(1, tensor.numel())))


def _spread(count: int, most: int | None) -> Sequence[int]:
    """All places of so many, or some that are evenly spaced: at least one."""
    if most is None or count <= most:
        return range(count)
    kept = max(1, most)
    return [count * (2 * place + 1) // (2 * kept) for place in range(kept)] if count else []


@dataclass(frozen=True, slots=True)
class _Matrices:
    """Two tensors as matrices of the same shape, at least one of them not read as it is stored."""

    pair: Two
    one: Dequantizer
    other: Dequantizer

    def compare(self, part: slice) -> PairFacts:
        """Compare some rows; where one side is plain, count the codes that are as near to it as they can be."""
        a, b = self.one.rows(part), self.other.rows(part)
        found = compare_numbers(a.reshape(-1), b.reshape(-1))
        first, second = self.pair
        if bool(first.quantized) == bool(second.quantized):
            return found
        plain, codes, coded = (a, b, self.other) if second.quantized else (b, a, self.one)
        best = coded.nearest(part, plain.float()).double()
        plain, codes = plain.double(), codes.double()
        found.near = int(((codes - plain).abs() <= HALF * (best - plain).abs()).sum())
        return found


def _dequantized(pairs: Mapping[Key, Two], walk: _Walk) -> Looked:
    """Compare what codes stand for, with other codes or with plain floats."""

    def blocks() -> Iterator[tuple[Key, _Matrices, slice, int]]:
        for key, pair in pairs.items():
            one, other = pair
            turned = any(each.quantized and each.quantized.flipped for each in pair)
            columns = one.info.shape[-2 if turned else -1]
            rows = math.prod(one.info.shape) // columns
            matrix = _matrix(one, turned=turned)
            copied = not walk.most and _is_copy(one, other)
            matrices = _Matrices(pair, matrix, matrix if copied else _matrix(other, turned=turned))
            for part in _slices(rows, columns, walk.most):
                yield key, matrices, part, (one.nbytes + other.nbytes) * (part.stop - part.start) // rows

    def compare(block: tuple[Key, _Matrices, slice, int]) -> tuple[Key, PairFacts, int]:
        key, matrices, part, nbytes = block
        return key, matrices.compare(part), nbytes

    for key, found, nbytes in work_ahead(blocks(), compare):
        yield key, found
        walk.pace.add(nbytes)


def _slices(rows: int, columns: int, most: int | None) -> Iterator[slice]:
    """Some rows of a matrix at a time: all of them, or about so many numbers from all over it."""
    size = max(1, (streams.PAGE if most else BLOCK) // columns)
    for place in _spread(-(-rows // size), most and most // (size * columns)):
        yield slice(size * place, min(size * (place + 1), rows))


def _is_copy(one: StoredTensor, other: StoredTensor) -> bool:
    """Whether both are codes that stand for the same numbers, byte for byte."""
    mine, theirs = one.changed, other.changed
    if not (mine and theirs) or (mine.kind, mine.options) != (theirs.kind, theirs.options):
        return False
    if mine.parts.keys() != theirs.parts.keys():
        return False
    first, second = (
        StoredReader(each.manifest).read([part.name for part in how.parts.values()])
        for each, how in ((one, mine), (other, theirs))
    )
    return all(
        part.dtype == theirs.parts[role].dtype and torch.equal(first[part.name], second[theirs.parts[role].name])
        for role, part in mine.parts.items()
    )


def _matrix(stored: StoredTensor, *, turned: bool) -> Dequantizer:
    """A tensor as rows of a matrix (out, in); `turned`: its model keeps it as (..., in, out)."""
    if stored.changed:
        return open_codes(StoredReader(stored.manifest), stored.changed)
    name = stored.info.name
    tensor = StoredReader(stored.manifest).read([name])[name]
    tensor = tensor.mT if turned else tensor
    matrix = tensor.reshape(-1, tensor.shape[-1])
    return Dequantizer(matrix.__getitem__, lambda part, _: matrix[part])
