"""Bad input of the largest sizes: one sentence each, in bounded memory, and nothing is lost."""

from __future__ import annotations

import ctypes
import errno
import gc
import hashlib
import json
import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import save_file

from inspector.analyses.vocabulary_map.compute import project
from inspector.errors import CheckpointError
from inspector.store.hashing import HASHES, HashCache
from inspector.store.keeping.arrays import SUFFIX
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.sentences import DISK_FULL

FEW, MANY, MILLION = 3, 90_000, 1_000_000


@pytest.fixture
def refusal(tmp_path, settings) -> Callable[[], str]:
    """Open a folder that is refused; gives the sentence."""

    def run() -> str:
        with pytest.raises(CheckpointError) as caught:
            open_checkpoint(CheckpointRef("path", str(tmp_path / "bad")), settings=settings, progress=silent,
                            restrict_paths=False)  # fmt: skip
        said = str(caught.value)
        assert "\n" not in said
        assert len(said) < 400
        return said

    return run


@contextmanager
def within(nbytes: int) -> Iterator[None]:
    """Take no more memory than that at any time, of Python's or a library's."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed before would be taken again unseen
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the most is counted from here
    before = psutil.Process().memory_info().rss
    yield
    (most,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    assert 1024 * int(most) - before < nbytes


def test_more_memory_than_that_is_noticed():
    with pytest.raises(AssertionError), within(20_000_000):
        b"".ljust(30_000_000, b"x")
    with within(40_000_000):
        b"".ljust(30_000_000, b"x")
    with pytest.raises(AssertionError), within(20_000_000):
        list(map(str, range(2_000_000)))


def shard(number: int, count: int) -> str:
    return f"model-{number:05}-of-{count:05}.safetensors"


def write_index(folder: Path, names: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))


def write_empty_tensors(path: Path, names: list[str]) -> None:
    """A shard of tensors that have a header each, and no numbers."""
    header = {name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in names}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def test_an_index_and_headers_that_disagree_on_ninety_thousand_names(tmp_path, refusal):
    folder = tmp_path / "bad"
    write_index(folder, {f"layer.{number}.weight": shard(1, 1) for number in range(MANY)})
    write_empty_tensors(folder / shard(1, 1), [f"layer.{number}.bias" for number in range(MANY)])
    with within(400_000_000):
        said = refusal()
    assert "'layer.0.weight'" in said
    assert f"({MANY:,} of {MANY:,} tensors are missing)" in said


def test_an_index_with_a_million_names(tmp_path, refusal):
    folder = tmp_path / "bad"
    write_index(folder, {f"t{number}": shard(1, 1) for number in range(MILLION)})
    save_file({"t0": torch.ones(2)}, folder / shard(1, 1))
    with within(500_000_000):
        said = refusal()
    assert "1,000,000" in said


@pytest.mark.parametrize("nbytes", [100_000_000, 1 << 40])
def test_a_header_of_a_hundred_megabytes(tmp_path, refusal, nbytes):
    folder = tmp_path / "bad"
    folder.mkdir()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", nbytes))
        file.truncate(100_000_100)
    with within(20_000_000):
        said = refusal()
    assert f"{nbytes:,} bytes" in said


@pytest.mark.parametrize("lost", [1, 2])
def test_shards_that_are_missing_are_counted(tmp_path, refusal, lost):
    folder = tmp_path / "bad"
    folder.mkdir()
    for number in range(1, FEW + 1):
        save_file({f"t{number}": torch.ones(2)}, folder / shard(number, FEW))
    for number in range(1, lost + 1):
        (folder / shard(number, FEW)).unlink()
    assert refusal().startswith(f"{shard(1, FEW)} is missing ({lost} of {FEW} shards are)")


@pytest.mark.parametrize("change", [-4, 4])
def test_a_shard_of_another_size_than_its_header_says(tmp_path, refusal, change):
    folder = tmp_path / "bad"
    folder.mkdir()
    for number in (1, 2):
        save_file({f"t{number}": torch.ones(2)}, folder / shard(number, 2))
    path = folder / shard(2, 2)
    os.truncate(path, path.stat().st_size + change)
    said = refusal()
    assert shard(2, 2) in said
    assert "truncated" in said if change < 0 else "after its last tensor" in said


@contextmanager
def full_disk(folder: Path) -> Iterator[list[str]]:
    """Have every write below a folder go to a device that is always full; gives the names that were tried."""
    opened, tried = Path.open, []

    def full(path: Path, mode: str = "r", *args, **options):
        if not {*mode}.isdisjoint("wax+") and path.is_relative_to(folder):
            tried.append(path.name)
            path, mode = Path("/dev/full"), mode.replace("x", "w")
        return opened(path, mode, *args, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "open", full)
        yield tried


def test_a_disk_that_is_full_while_digests_are_kept(tmp_path):
    """A digest that cannot be kept is computed again the next time: hours of reading are not lost for it."""
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"abc")
    cache = HashCache(tmp_path / "cache" / HASHES)
    with full_disk(tmp_path / "cache") as tried:
        found = cache.digests({"model.safetensors": file}, progress=silent)
    assert found == {"model.safetensors": hashlib.sha256(b"abc").hexdigest()}
    assert tried == [HASHES]
    assert cache.digests({"model.safetensors": file}, progress=silent) == found


def test_a_disk_that_is_full_while_a_checkpoint_is_opened(tmp_path, settings, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bad")
    reference = CheckpointRef("path", str(folder))
    with full_disk(settings.home) as tried, pytest.raises(CheckpointError) as caught:
        open_checkpoint(reference, settings=settings, progress=silent, restrict_paths=False)
    assert str(caught.value) == DISK_FULL
    assert tried
    assert not [path for path in settings.home.rglob("*") if path.is_file()]
    assert open_path(folder).manifest.name == "bad"  # nothing of the first try is in the way


def test_a_disk_that_is_full_while_a_map_is_kept(tmp_path, settings, open_path):
    checkpoint = open_path(save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bad"))
    with full_disk(settings.home) as tried:
        first = project(checkpoint, progress=silent)
    assert tried
    assert not list(settings.home.rglob(f"*{SUFFIX}"))
    again = project(checkpoint, progress=silent)
    assert (first.cached, again.cached) == (False, False)
    assert first.points.equals(again.points)
    assert project(checkpoint, progress=silent).cached


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_a_disk_that_fails_while_headers_are_read(tmp_path, refusal, monkeypatch, number):
    folder = tmp_path / "bad"
    folder.mkdir()
    save_file({"t": torch.ones(2)}, folder / "model.safetensors")
    opened = Path.open

    def failing(path: Path, *args, **options):
        if path.name == "model.safetensors":
            raise OSError(number, os.strerror(number))
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", failing)
    assert refusal() == f"The checkpoint could not be read or stored ({os.strerror(number)}): try again."
