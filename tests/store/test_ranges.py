"""Bytes wherever they are: every reader says first what it reads, and what is not there is never read as zeros."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from inspector.errors import CheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.tensors import StoredReader
from inspector.store.copies import equal_copies, same_bytes
from inspector.store.manifests.manifest import FileInfo, Manifest
from inspector.store.readers.ranges import OpenFiles, PlainBytes, Span
from inspector.store.readers.streams import stream, whole_parts

ABSENT = "These bytes have not come."


class PartialBytes(PlainBytes):
    """A file of which only what was asked for is here."""

    def __init__(self, file: FileInfo, had: list[Span]) -> None:
        super().__init__(file)
        self._had = had

    def need(self, spans: Sequence[Span]) -> None:
        self._had.extend(spans)

    def into(self, begin: int, place: memoryview) -> None:
        self._refuse_holes(begin, begin + len(place))
        super().into(begin, place)

    def map(self, begin: int, end: int) -> np.ndarray:
        self._refuse_holes(begin, end)
        return super().map(begin, end)

    def _refuse_holes(self, begin: int, end: int) -> None:
        if not any(first <= begin and end <= last for first, last in self._had):
            raise CheckpointError(ABSENT)


class PartialManifest(Manifest):
    """A checkpoint whose files come as they are needed."""

    def bytes_of(self, name: str) -> PartialBytes:
        return PartialBytes(self._by_name[name], self.__dict__.setdefault("had", []))


def partial(manifest: Manifest) -> PartialManifest:
    return PartialManifest(**{each.name: getattr(manifest, each.name) for each in dataclasses.fields(manifest)})


@pytest.fixture
def opened(tmp_path, open_path) -> StagedCheckpoint:
    """Plain tensors, copies of them, and a weight that is stored as codes."""
    rows = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))
    tensors = {
        "plain": rows, "copy": rows.clone(), "other": rows + 1, "empty": torch.empty(0, 4),
        "w.weight": rows.to(torch.float8_e4m3fn), "w.weight_scale_inv": torch.ones(1, 1),
    }  # fmt: skip
    save_file(tensors, tmp_path / "model.safetensors")
    return open_path(tmp_path)


def test_every_reader_needs_first_what_it_reads(opened: StagedCheckpoint) -> None:
    whole, few = opened.manifest, partial(opened.manifest)
    truth, found = opened.reader, StagedCheckpoint(few, settings=opened.settings).reader
    assert len(found.stored("w.weight")) == 2
    for name, tensor in truth.read(truth.tensors.names).items():
        assert torch.equal(found.read([name])[name], tensor), name
    parts = list(whole_parts(whole.tensors, piece=100))
    streamed = [[data for _, data in stream(each, parts, lambda _, data: data.tobytes())] for each in (whole, few)]
    assert streamed[0] == streamed[1]
    assert equal_copies(few) == equal_copies(whole) == [("copy", "plain")]
    assert not same_bytes(few, "plain", "other")


def test_only_what_is_asked_for_is_needed(opened: StagedCheckpoint) -> None:
    few = partial(opened.manifest)
    StoredReader(few).read(["other"])
    other = few.by_name["other"]
    assert few.__dict__["had"] == [(other.begin, other.begin + other.nbytes)]


def test_what_nobody_needed_is_an_error(opened: StagedCheckpoint) -> None:
    few = partial(opened.manifest)
    plain = few.by_name["plain"]
    file = few.bytes_of(plain.file)
    file.need([(plain.begin, plain.begin + 10)])
    file.into(plain.begin, memoryview(bytearray(10)))
    for read in (
        lambda: file.into(plain.begin, memoryview(bytearray(11))),
        lambda: file.map(plain.begin - 1, plain.begin + 10),
    ):
        with pytest.raises(CheckpointError, match=ABSENT):
            read()


def test_any_span_is_the_files(tmp_path) -> None:
    path = tmp_path / "x.bin"
    data = np.random.default_rng(0).bytes(20_000)
    path.write_bytes(data)
    file = FileInfo("x.bin", "pytorch", len(data), None, path)
    with OpenFiles(lambda _: PlainBytes(file), most=1) as files:
        for begin, end in ((0, 1), (0, 20_000), (4_095, 4_097), (8_192, 8_200), (19_999, 20_000)):
            assert files.read("x.bin", begin, end - begin) == data[begin:end]
            assert files["x.bin"].map(begin, end).tobytes() == data[begin:end]
        for begin, end in ((19_999, 20_001), (30_000, 30_001)):
            with pytest.raises(CheckpointError, match="has changed since it was opened"):
                files.read("x.bin", begin, end - begin)
            with pytest.raises(CheckpointError, match="has changed since it was opened"):
                files["x.bin"].map(begin, end)
