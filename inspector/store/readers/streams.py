"""Stream tensors' bytes out of the files: in their order, a bounded piece at a time, in several threads.

A piece is read into a buffer that its thread keeps, so memory is bounded by the threads and no page
of it is ever given back and taken again. Files are read and not mapped: a disk that fails is an
error with a sentence then, and no signal that ends the process.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np

from inspector.store.manifests.columns import TensorInfo
from inspector.store.manifests.manifest import Manifest
from inspector.store.processors import count_processors
from inspector.store.readers.ranges import OpenFiles

PIECE = 1 << 24  # bytes that a thread reads at once
NEAR = 1 << 12  # bytes between two parts that are read together
LEAST_THREADS, MOST_THREADS = 2, 8  # one reads while the other computes; each holds a piece
AHEAD = 2  # pieces that wait for each thread
LINE = 64  # bytes; an address keeps its place in it
PAGE, PAGES = 1 << 14, 64  # of a tensor that is sampled
SAMPLED_NBYTES = 1_000_000_000  # that a sample reads of a checkpoint, or a page a tensor

T = TypeVar("T")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class StreamPart:
    """Bytes of one tensor that lie side by side."""

    tensor: TensorInfo  # packed
    place: int  # of the first, counted in the tensor
    nbytes: int

    @property
    def begin(self) -> int:
        """Where they begin in the file."""
        return self.tensor.begin + self.place


Row = tuple[StreamPart, ...]  # one part of each checkpoint
Work = Callable[[StreamPart, np.ndarray], T]  # the bytes are the thread's own until it returns
JointWork = Callable[[Row, tuple[np.ndarray, ...]], T]
Run = tuple[int, int, int]  # first byte in the file, how many, and where in the buffer


def count_threads() -> int:
    """Threads that read and compute: as many as processors that this process may use, or a worker's share; 2 to 8."""
    share = os.environ.get("OMP_NUM_THREADS", "")
    return max(LEAST_THREADS, min(count_processors(), int(share) if share.isdecimal() else MOST_THREADS, MOST_THREADS))


def whole_parts(tensors: Iterable[TensorInfo], *, in_rows: bool = False, piece: int = PIECE) -> Iterator[StreamPart]:
    """Cut tensors into parts, file after file.

    Args:
        in_rows: Between two lines of the last axis, where one is no longer than a part.
        piece: Bytes of a part at most.
    """
    for tensor in sorted(tensors, key=lambda each: (each.file, each.begin)):
        most = piece - (piece % _line_nbytes(tensor) if in_rows else 0) or piece
        for place in range(0, tensor.nbytes, most):
            yield StreamPart(tensor, place, min(most, tensor.nbytes - place))


def _line_nbytes(tensor: TensorInfo) -> int:
    """Bytes of one line of the last axis; of what has no axis, 1."""
    lines = math.prod(tensor.shape[:-1])
    return max(1, tensor.nbytes // max(1, lines)) if tensor.shape else 1


def sampled_parts(
    tensors: Collection[TensorInfo], *, nbytes: int = SAMPLED_NBYTES, page: int = PAGE, piece: int = PIECE
) -> Iterator[StreamPart]:
    """Take evenly spaced pages of each tensor; a small one whole.

    Args:
        nbytes: About as many are read in all; one page a tensor at least, and `PAGES` at most.
        page: Bytes of a page.
        piece: Bytes of a part at most, as of `whole_parts`; no less than a page.
    """
    pages = min(max(nbytes // (max(1, len(tensors)) * page), 1), PAGES)
    for tensor in sorted(tensors, key=lambda each: (each.file, each.begin)):
        if tensor.nbytes <= pages * page:
            yield from whole_parts([tensor], piece=piece)
            continue
        for number in range(pages):
            place = (tensor.nbytes - page) * (2 * number + 1) // (2 * pages)
            yield StreamPart(tensor, place - place % LINE, page)


def stream(
    manifest: Manifest, parts: Iterable[StreamPart], work: Work[T], *, threads: int | None = None, piece: int = PIECE
) -> Generator[tuple[StreamPart, T]]:
    """Read parts and work on each of them.

    Args:
        parts: File after file, rising in each.
        work: Called in a thread of its own, with a part and its bytes.
        threads: How many; None: `count_threads`.
        piece: Bytes that each of them reads at once; no part is longer.

    Yields:
        Each part, and what was made of it, in their order.

    Raises:
        CheckpointError: If a file cannot be read, or is no longer the one that was opened.
    """
    rows = ((part,) for part in parts)
    joint = stream_together((manifest,), rows, lambda row, data: work(row[0], data[0]), threads=threads, piece=piece)
    for (part,), made in joint:
        yield part, made


def stream_together(
    manifests: Sequence[Manifest],
    rows: Iterable[Row],
    work: JointWork[T],
    *,
    threads: int | None = None,
    piece: int = PIECE,
) -> Generator[tuple[Row, T]]:
    """Read parts of several checkpoints side by side, and work on those of each row.

    Args:
        rows: A part of each, in the order of `manifests`; rising in the first one's files.
        work: Called in a thread of its own, with a row and the bytes of its parts.
        threads: As for `stream`.
        piece: As for `stream`, of each checkpoint.

    Yields:
        Each row, and what was made of it, in their order.

    Raises:
        CheckpointError: If a file cannot be read, or is no longer the one that was opened.
    """
    own = threading.local()
    opened: list[_Reader] = []

    def start() -> None:
        own.readers = [_Reader(manifest, piece) for manifest in manifests]
        opened.extend(own.readers)

    def run(together: list[Row]) -> list[tuple[Row, T]]:
        columns = zip(*together, strict=True)
        read = [reader.read(parts) for reader, parts in zip(own.readers, columns, strict=True)]
        return [(row, work(row, data)) for row, data in zip(together, zip(*read, strict=True), strict=True)]

    try:
        for made in work_ahead(_pieces(rows, piece), run, threads=threads, start=start):
            yield from made
    finally:
        for reader in opened:
            reader.close()


def work_ahead(
    items: Iterable[Item],
    work: Callable[[Item], T],
    *,
    threads: int | None = None,
    start: Callable[[], None] | None = None,
) -> Generator[T]:
    """Work on items in several threads, a few ahead of what is asked for.

    Args:
        items: Taken in the caller's thread, one by one.
        threads: As for `stream`.
        start: Called first in each of them.

    Yields:
        What was made of the items, in their order.
    """
    threads = threads or count_threads()
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(threads, initializer=start)
    left = iter(items)
    try:
        for item in islice(left, threads * AHEAD):
            waiting.append(pool.submit(work, item))
        while waiting:
            yield waiting.popleft().result()
            for item in islice(left, 1):
                waiting.append(pool.submit(work, item))
    finally:
        pool.shutdown(cancel_futures=True)


def _pieces(rows: Iterable[Row], nbytes: int) -> Iterator[list[Row]]:
    """Rows whose parts lie in one file each, and that buffers of so many bytes hold together."""
    piece: list[Row] = []
    taken: list[int] = []
    for row in rows:
        wanted = [part.nbytes + NEAR + LINE for part in row]
        full = [before + more for before, more in zip(taken, wanted, strict=True)] if piece else wanted
        if piece and (max(full) > nbytes or _files(row) != _files(piece[0])):
            yield piece
            piece, full = [], wanted
        piece.append(row)
        taken = full
    if piece:
        yield piece


def _files(row: Row) -> tuple[str, ...]:
    return tuple(part.tensor.file for part in row)


def _runs(piece: Iterable[StreamPart]) -> tuple[list[Run], list[int]]:
    """What to read for the parts of a piece, and where in the buffer each of them then begins."""
    runs: list[Run] = []
    places: list[int] = []
    for part in piece:
        begin, count, at = runs[-1] if runs else (0, 0, 0)
        end = begin + count
        if runs and end <= part.begin <= end + NEAR:
            runs[-1] = (begin, part.begin + part.nbytes - begin, at)
        else:
            at += count
            at += (part.begin - at) % LINE
            begin = part.begin
            runs.append((begin, part.nbytes, at))
        places.append(at + part.begin - begin)
    return runs, places


class _Reader:
    """What one thread reads a checkpoint with: a buffer, and the file that it is at."""

    def __init__(self, manifest: Manifest, nbytes: int) -> None:
        self._files = OpenFiles(manifest.bytes_of, most=1)
        self._buffer = np.empty(nbytes + NEAR + 2 * LINE, np.uint8)
        self.close = self._files.close

    def read(self, piece: Sequence[StreamPart]) -> list[np.ndarray]:
        """Read the parts of a piece, all of one file; they are there until the next is read."""
        file = self._files[piece[0].tensor.file]
        runs, places = _runs(piece)
        file.need([(begin, begin + count) for begin, count, _ in runs])
        for begin, count, at in runs:
            file.into(begin, self._buffer[at : at + count].data)
        file.check()
        return [self._buffer[at : at + part.nbytes] for part, at in zip(piece, places, strict=True)]
