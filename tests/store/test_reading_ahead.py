"""Files are fetched from the disk while libraries are imported: which, and for which questions."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import typer

from inspector.cli import answering, child
from inspector.errors import RequestError
from inspector.store.reading_ahead import PIECE, read_ahead

LARGE = 3 * PIECE + 5


@pytest.fixture
def manifest(tmp_path: Path) -> Any:
    """Two shards of a checkpoint."""
    sizes = {"first": LARGE, "second": 7}
    for name, nbytes in sizes.items():
        (tmp_path / name).write_bytes(bytes(nbytes))
    return SimpleNamespace(files=[SimpleNamespace(path=tmp_path / name, nbytes=sizes[name]) for name in sizes])


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[int, int]]]:
    """Name of a file -> what the system is asked to fetch of it, as (begin, number of bytes)."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def advise(descriptor: int, begin: int, nbytes: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_WILLNEED
        found[Path(f"/proc/self/fd/{descriptor}").readlink().name].append((begin, nbytes))

    monkeypatch.setattr(os, "posix_fadvise", advise)
    return found


def available(monkeypatch: pytest.MonkeyPatch, nbytes: int) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=nbytes))


def test_every_byte_is_asked_for_in_pieces_that_the_system_takes(manifest, asked_for, settings):
    read_ahead(manifest, settings=settings)
    assert list(asked_for) == ["first", "second"]
    assert asked_for["first"] == [(begin, PIECE) for begin in range(0, LARGE, PIECE)]
    assert asked_for["second"] == [(0, PIECE)]


def test_what_would_drop_out_of_memory_again_is_not_fetched(manifest, asked_for, settings, monkeypatch):
    total = sum(file.nbytes for file in manifest.files)
    available(monkeypatch, 2 * total - 1)
    read_ahead(manifest, settings=settings)
    assert asked_for == {}
    available(monkeypatch, 2 * total)
    read_ahead(manifest, settings=settings)
    assert len(asked_for) == 2


def test_a_file_that_is_gone_is_left_to_whoever_reads_it(manifest, asked_for, settings):
    manifest.files[0].path.unlink()
    read_ahead(manifest, settings=settings)
    assert list(asked_for) == ["second"]


def test_files_are_as_they_were(manifest, settings):
    """With the system's own answer."""
    before = [file.path.read_bytes() for file in manifest.files]
    read_ahead(manifest, settings=settings)
    assert [file.path.read_bytes() for file in manifest.files] == before


@pytest.mark.parametrize(
    ("verb", "options", "whole"),
    [
        ("check", {"values": "auto"}, True),
        ("check", {"values": "all"}, True),
        ("check", {"values": "sample"}, False),
        ("check", {"values": "none"}, False),
        ("compare", {"values": "all"}, True),
        ("lens", {"text": "a"}, True),
        ("embeddings", {}, False),
        ("sharing", {}, False),
    ],
)
def test_only_what_reads_the_files_from_end_to_end_has_them_fetched(verb, options, whole, monkeypatch):
    asked: list[bool] = []

    def start(task: child.Task, *_: Any, **__: Any) -> Any:
        asked.append(task.reads_all)
        raise RequestError("That is all.")

    monkeypatch.setattr(child, "start", start)
    with pytest.raises(typer.Exit):
        answering.ask(verb, "demo-bert", **options)
    assert asked == [whole]
