"""Streams of tensors' bytes: all of them, once, in order, whatever the pieces; and files that fail."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from inspector.errors import CheckpointError
from inspector.progress import Pace
from inspector.store.readers import streams
from inspector.store.readers.streams import sampled_parts, stream, whole_parts

NUMBERS = torch.arange(3_000, dtype=torch.float32)


@pytest.fixture
def opened(tmp_path, open_path):
    """Two shards, with tensors that begin at odd bytes."""
    folder = tmp_path / "shards"
    folder.mkdir()
    first = {"a.odd": torch.arange(3, dtype=torch.uint8), "b.long": NUMBERS, "c.empty": torch.empty(0, 4)}
    second = {"d.short": NUMBERS[:5].bfloat16(), "e.pairs": NUMBERS.view(30, 100).long()}
    save_file(first, folder / "model-00001-of-00002.safetensors")
    save_file(second, folder / "model-00002-of-00002.safetensors")
    return open_path(folder), first | second


def bytes_of(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


@pytest.mark.parametrize("piece", [7, 64, 1_000, 1 << 24])
@pytest.mark.parametrize("threads", [None, 1, 2, 5])
def test_every_byte_comes_once_and_in_order(opened, piece, threads):
    checkpoint, tensors = opened
    read: dict[str, bytes] = {}
    parts = list(whole_parts(checkpoint.manifest.tensors, piece=piece))
    flowing = stream(checkpoint.manifest, parts, lambda _, data: data.tobytes(), threads=threads, piece=piece)
    for part, data in flowing:
        assert part.place == len(read.get(part.tensor.name, b""))
        assert len(data) == part.nbytes <= piece
        read[part.tensor.name] = read.get(part.tensor.name, b"") + data
    assert read == {name: bytes_of(tensor) for name, tensor in tensors.items() if tensor.numel()}


@pytest.mark.parametrize(("processors", "threads"), [(1, 2), (2, 2), (5, 5), (64, 8)])
def test_threads_are_as_many_as_processors_that_may_be_used(monkeypatch, processors, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)
    assert streams.count_threads() == threads
    monkeypatch.delattr(os, "sched_getaffinity")  # of Linux alone
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert streams.count_threads() == threads


@pytest.mark.parametrize(("told", "threads"), [("4", 4), ("1", 2), ("32", 8), ("4,2", 8), ("", 8)])
def test_a_workers_threads_are_its_share_of_the_processors(monkeypatch, told, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert streams.count_threads() == threads


def test_a_sample_is_pages_of_every_tensor_and_small_ones_whole(opened):
    checkpoint, tensors = opened
    held = checkpoint.manifest.tensors
    parts = list(sampled_parts(held, nbytes=4 * 128 * len(held), page=128))
    assert {part.tensor.name for part in parts} == {name for name, tensor in tensors.items() if tensor.numel()}
    pages = [part for part in parts if part.tensor.name == "b.long"]
    # 12,000 bytes: the middles of four quarters, moved down to the next line
    assert [part.place for part in pages] == [1_472, 4_416, 7_360, 10_368]
    for part, data in stream(checkpoint.manifest, parts, lambda _, data: data.tobytes()):
        whole = bytes_of(tensors[part.tensor.name])
        assert data == whole[part.place : part.place + part.nbytes]
        assert part.nbytes in (len(whole), 128)


def test_a_reader_that_stops_early_reads_no_further(opened):
    checkpoint, _ = opened
    seen = []
    parts = list(whole_parts(checkpoint.manifest.tensors, piece=64))
    flowing = stream(checkpoint.manifest, parts, lambda part, _: seen.append(part), threads=2, piece=64)
    next(flowing)
    flowing.close()
    assert len(seen) <= 1 + 2 * streams.AHEAD < len(parts)


def test_a_disk_that_fails_is_one_sentence(opened, monkeypatch):
    class Failing(io.FileIO):
        def readinto(self, _):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    checkpoint, _ = opened
    monkeypatch.setattr(Path, "open", lambda path, *_, **__: Failing(path))
    with pytest.raises(CheckpointError, match=r"^model-00001-of-00002\.safetensors cannot be read \(Input/output"):
        list(stream(checkpoint.manifest, whole_parts(checkpoint.manifest.tensors), lambda *_: None))


def test_a_slow_disk_is_told_of_and_can_be_left_at_any_piece(opened, monkeypatch):
    """Each piece takes two seconds: the reader says how long the rest takes, and stops when it is told to."""
    now, told, read = [10.0], [], []

    class Slow(io.FileIO):
        def readinto(self, buffer):
            now[0] += 2
            count = super().readinto(buffer)
            read.append(count)
            return count

    class StoppedError(Exception):
        pass

    def tell(share: float | None, text: str) -> None:
        told.append(text)
        if "s left" in text:
            raise StoppedError

    checkpoint, _ = opened
    parts = list(whole_parts(checkpoint.manifest.tensors, piece=4_000))
    total = sum(part.nbytes for part in parts)
    monkeypatch.setattr(Path, "open", lambda path, *_, **__: Slow(path))
    pace = Pace(tell, "Reading", total, clock=lambda: now[0])

    def read_all() -> None:
        for part, _ in stream(checkpoint.manifest, parts, lambda *_: None, threads=1, piece=4_000):
            pace.add(part.nbytes)

    with pytest.raises(StoppedError):
        read_all()
    assert told[0] == "Reading"
    assert told[-1].startswith("Reading: 0.0 of 0.0 GB, 0.00 GB/s, ")
    assert sum(read) < total


@pytest.mark.parametrize("how", ["shorter", "longer", "another", "gone"])
def test_a_file_that_changes_after_it_was_opened_is_one_sentence(opened, how):
    checkpoint, _ = opened
    path = checkpoint.manifest.paths["model-00002-of-00002.safetensors"]
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes({"shorter": data[:-9], "longer": data + b"x", "another": data}[how])
        os.utime(path, ns=(1, 1))
    said = "cannot be read" if how == "gone" else "has changed since it was opened: open it again."
    with pytest.raises(CheckpointError, match=said):
        list(stream(checkpoint.manifest, whole_parts(checkpoint.manifest.tensors), lambda *_: None))


def test_a_pace_tells_how_much_how_fast_and_how_long():
    now, told = [10.0], []
    pace = Pace(lambda share, text: told.append((share, text)), "Reading", 8_000_000_000, clock=lambda: now[0])
    pace.add(1)  # too soon to tell
    now[0] = 12.0
    pace.add(1_999_999_999)
    now[0] = 12.1
    pace.add(1_000_000_000)
    now[0] = 18.0
    pace.add(5_000_000_000)
    assert told == [
        (0.0, "Reading"),
        (0.25, "Reading: 2.0 of 8.0 GB, 1.00 GB/s, 6 s left"),
        (1.0, "Reading: 8.0 of 8.0 GB, 1.00 GB/s, 0 s left"),
    ]
