"""The cache of arrays: whole or not there, never larger than allowed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from inspector.store.keeping.arrays import STALE_SECONDS, ArrayCache

ARRAYS = {"places": np.arange(6, dtype=np.float32).reshape(3, 2), "told": np.array('{"a": "é"}')}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "maps"


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_what_was_put_is_found_again_by_another_process(folder):
    ArrayCache(folder).put({"b": 1, "a": "x"}, ARRAYS)
    found = ArrayCache(folder).get({"a": "x", "b": 1})
    assert found is not None
    assert found["places"].dtype == np.float32
    assert np.array_equal(found["places"], ARRAYS["places"])
    assert str(found["told"]) == '{"a": "é"}'
    assert ArrayCache(folder).get({"a": "x", "b": 2}) is None
    assert ArrayCache(folder).get({"a": "x", "b": "1"}) is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "not ours"])
def test_a_damaged_file_is_not_there(folder, damage):
    cache = ArrayCache(folder)
    cache.put({"a": 1}, ARRAYS)
    path = only_file(folder)
    data = path.read_bytes()
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    damaged = {"cut": data[:-7], "flipped": flipped, "empty": b"", "not ours": b"PK" * 100}
    path.write_bytes(damaged[damage])
    assert cache.get({"a": 1}) is None
    cache.put({"a": 1}, ARRAYS)
    assert cache.get({"a": 1}) is not None


def test_no_object_is_unpickled(folder):
    with pytest.raises(ValueError, match="allow_pickle"):
        ArrayCache(folder).put({"a": 1}, {"bad": np.array([{}], dtype=object)})
    assert not folder.exists()


def test_what_was_not_read_for_longest_goes_first(folder):
    block = {"block": np.zeros(1_000, dtype=np.float64)}
    cache = ArrayCache(folder, max_nbytes=20_000)
    for number, name in enumerate("ab"):
        cache.put({"name": name}, block)
        for path in folder.iterdir():
            if path.stat().st_mtime > 1_000:
                os.utime(path, (number + 1, number + 1))
    assert cache.get({"name": "a"})  # now the newer one
    cache.put({"name": "c"}, block)
    assert [cache.get({"name": name}) is not None for name in "abc"] == [True, False, True]
    cache.put({"name": "large"}, {"block": np.zeros(10_000)})
    assert cache.get({"name": "large"}) is None
    assert cache.get({"name": "c"}) is not None


def test_what_a_killed_worker_left_is_swept(folder):
    cache = ArrayCache(folder)
    cache.put({"a": 1}, ARRAYS)
    old, new = folder / ".new-old", folder / ".new-new"
    for path in (old, new):
        path.write_bytes(b"half")
    gone = new.stat().st_mtime - STALE_SECONDS - 10
    os.utime(old, (gone, gone))
    cache.put({"a": 2}, ARRAYS)
    assert not old.exists()
    assert new.exists()  # somebody may be writing it


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("here")
    cache = ArrayCache(tmp_path / "file" / "maps")
    cache.put({"a": 1}, ARRAYS)
    assert cache.get({"a": 1}) is None
