"""Finding checkpoints on this machine: by names alone, within bounds, following no link."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.serving.finding import Bounds, FolderSearch, find_checkpoints

VERSION = "0123456789abcdef0123456789abcdef01234567"


def make(folder: Path, *, age: float = 0.0, files: tuple[str, ...] = ("config.json", "model.safetensors")) -> Path:
    """A folder with empty files of these names, as old as that."""
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).touch()
        then = time.time() - age
        os.utime(folder / name, (then, then))
    return folder


def test_checkpoints_are_found_by_their_files_newest_first(tmp_path: Path) -> None:
    old = make(tmp_path / "runs/a/checkpoint-500", age=100)
    new = make(tmp_path / "llama", age=10, files=("config.json", "model-00001-of-00002.safetensors"))
    older = make(tmp_path / "llama/original", age=1_000, files=("config.json", "pytorch_model.bin"))
    make(tmp_path / "no-weights", files=("config.json", "vocab.txt"))
    make(tmp_path / "no-config", files=("model.safetensors",))
    make(tmp_path / "left-by-a-run", files=("config.json", "optimizer.pt", "training_args.bin"))
    make(tmp_path / ".hidden/x")
    make(tmp_path / "app/node_modules/x")
    found = find_checkpoints([tmp_path, tmp_path / "llama"])
    assert [each.path for each in found] == [new, old, older]
    assert [each.name for each in found] == ["llama", "a/checkpoint-500", "original"]
    assert found[0].reference == f"path:{new}"


def test_a_model_of_the_hubs_cache_has_its_id(tmp_path: Path) -> None:
    for model in ("models--org--tiny-bert", "models--gpt2", "datasets--org--rows"):
        make(tmp_path / model / "snapshots" / VERSION)
        make(tmp_path / model / "blobs" / "x")
    found = find_checkpoints([tmp_path])
    assert sorted(each.name for each in found) == ["gpt2", "org/tiny-bert"]
    assert all(each.of_hub for each in found)


def test_no_link_is_followed(tmp_path: Path) -> None:
    outside = make(tmp_path / "outside" / "model")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "away").symlink_to(outside)
    (inside / "round").symlink_to(inside)
    assert find_checkpoints([inside]) == ()


@pytest.mark.parametrize(
    ("bounds", "count"),
    [({}, 3), ({"depth": 1}, 1), ({"entries": 6}, 1), ({"found": 2}, 2), ({"seconds": 0.0}, 0), ({"folder": 1}, 0)],
)
def test_a_search_ends_at_its_bounds(bounds: dict[str, int], count: int, tmp_path: Path) -> None:
    make(tmp_path / "a")
    make(tmp_path / "a/b")
    make(tmp_path / "a/b/c")
    assert len(find_checkpoints([tmp_path], replace(Bounds(), **bounds))) == count


def test_the_root_itself_is_not_searched() -> None:
    assert find_checkpoints([Path("/")]) == ()


def test_names_that_no_link_can_hold_are_passed_by(tmp_path: Path) -> None:
    make(tmp_path / "fine")
    make(Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff")))
    assert [each.name for each in find_checkpoints([tmp_path])] == ["fine"]


def test_a_folder_that_cannot_be_read_is_passed_by(tmp_path: Path) -> None:
    make(tmp_path / "fine")
    assert [each.name for each in find_checkpoints([tmp_path / "gone", tmp_path])] == ["fine"]


@pytest.mark.parametrize(("fresh", "again"), [(3_600.0, False), (0.0, True)])
def test_nobody_waits_for_a_search(tmp_path: Path, fresh: float, again: bool) -> None:
    make(tmp_path / "bert")
    go_on = threading.Event()
    searches = []

    def places() -> list[Path]:
        searches.append(1)
        go_on.wait()
        return [tmp_path]

    search = FolderSearch(places, fresh_seconds=fresh)
    assert search.found() == search.found() == ()
    assert search.under_way
    go_on.set()
    while search.under_way:
        time.sleep(0.01)
    assert [each.name for each in search.found()] == ["bert"]
    while search.under_way:
        time.sleep(0.01)
    assert searches == [1] * (2 if again else 1)  # what was just found is not looked for again
