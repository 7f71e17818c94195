"""A worker reads the files of the checkpoints that it is asked about, and nothing beside them."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inspector.errors import CheckpointError
from inspector.results.checkpoint import Opened
from inspector.sandbox.confinement import Confinement
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.wire import OpenRequest, RunRequest
from inspector.serving.engine.workers.outside import NOTHING, find_outside
from inspector.settings import Settings, read_settings
from inspector.store.reference import CheckpointRef
from tests.serving.engine.engine_attempts import DONE
from tests.serving.engine.engine_harness import WAIT, answer, eventually, held
from tests.serving.engine.engine_lies import CATALOG, FUNCTIONS
from tests.serving.engine.engine_stand_ins import CATALOG as ATTEMPTS
from tests.store.store_builders import hub_cache, opened, pack, small_checkpoint, upload_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="confinement is Linux's")
REFUSED = "PermissionError"
WEIGHTS = "model.safetensors"


@contextmanager
def started(settings: Settings, *, restrict_paths: bool = False, spare: bool = False) -> Iterator[LocalEngine]:
    catalog = (*CATALOG, *ATTEMPTS)
    engine = LocalEngine(
        settings, restrict_paths=restrict_paths, spare=spare, catalog=catalog, functions=FUNCTIONS
    )  # fmt: skip
    try:
        yield engine
    finally:
        engine.close()


@pytest.fixture
def two(tmp_path) -> tuple[Path, Path]:
    """Folders side by side, readable for their owner alone, with other files in the first."""
    mine, yours = (small_checkpoint(tmp_path / name, seed=seed) for seed, name in enumerate(("mine", "yours")))
    (mine / "notes.md").write_text("secret")
    (mine / "deeper").mkdir()
    (mine / "deeper" / WEIGHTS).write_bytes(b"secret")
    for path in (*mine.rglob("*"), *yours.iterdir()):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return mine, yours


def open_path(engine: LocalEngine, path: Path) -> Opened:
    return engine.open(CheckpointRef("path", str(path))).result(WAIT)


def read(engine: LocalEngine, opened: Opened, path: Path, **parameters: str) -> str:
    return answer(engine, opened.fingerprint, "attempt", what="read", target=str(path), **parameters)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("where", ["command line", "own machine", "folders"])
@pytest.mark.parametrize("later", [False, True], ids=["the worker that opened it", "a later one"])
def test_a_worker_reads_its_own_folders_checkpoint_alone(tmp_path, two, where, later):
    mine, yours = two
    roots = {"own machine": "/", "folders": str(tmp_path)}.get(where, "")
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path / "home"), "INSPECTOR_ROOTS": roots})
    with started(settings, restrict_paths=bool(roots)) as engine:
        found = open_path(engine, mine)
        open_path(engine, yours)
        assert answer(engine, found.fingerprint, "digests")[WEIGHTS] == digest(mine / WEIGHTS)
        if later:
            assert engine.release(found.fingerprint)
        tried = {path: read(engine, found, path) for path in (
            mine / WEIGHTS, yours / WEIGHTS, yours / "config.json", mine / "notes.md", mine / "deeper" / WEIGHTS,
        )}  # fmt: skip
    assert [path for path, said in tried.items() if said == DONE] == [mine / WEIGHTS]
    assert set(tried.values()) == {DONE, REFUSED}


def test_a_comparison_reads_both_and_the_next_question_answers_right(settings, two):
    mine, yours = two
    with started(settings) as engine:
        first, second = open_path(engine, mine), open_path(engine, yours)
        assert read(engine, first, yours / WEIGHTS) == REFUSED
        assert read(engine, first, yours / WEIGHTS, other=second.fingerprint) == DONE
        assert read(engine, first, mine / WEIGHTS, other=second.fingerprint) == DONE
        assert read(engine, second, mine / WEIGHTS) == REFUSED
        assert answer(engine, first.fingerprint, "digests")[WEIGHTS] == digest(mine / WEIGHTS)
        assert engine.endings() == (), "a worker that is replaced has not failed"


def test_of_a_hub_cache_only_the_blobs_of_this_version(settings, two, tmp_path):
    mine, yours = two
    cache = tmp_path / "hub"
    for folder, name in ((mine, "org/mine"), (yours, "org/yours")):
        shutil.rmtree(folder / "deeper", ignore_errors=True)
        hub_cache(folder, name, cache)
    snapshot = cache / "models--org--mine" / "snapshots" / ("a" * 40)
    other_version = cache / "models--org--mine" / "blobs" / ("f" * 40)
    other_version.write_bytes(b"of another version")
    with started(settings) as engine:
        found = open_path(engine, snapshot)
        assert found.name == "org/mine"
        assert answer(engine, found.fingerprint, "digests")[WEIGHTS] == digest(mine / WEIGHTS)
        assert read(engine, found, snapshot / WEIGHTS) == DONE
        theirs = cache / "models--org--yours" / "snapshots" / ("a" * 40) / WEIGHTS
        assert {read(engine, found, path) for path in (theirs, other_version)} == {REFUSED}


def test_who_reads_a_model_of_the_hub_cannot_write_the_cache(settings, two, tmp_path, monkeypatch):
    """And who downloads reads nothing of it, so a stranger's file changes no other model."""
    mine, yours = two
    shutil.rmtree(mine / "deeper")
    cache = tmp_path / "hub"
    for folder, name in ((mine, "org/mine"), (yours, "org/yours")):
        hub_cache(folder, name, cache)
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    theirs = cache / "models--org--yours" / "snapshots" / ("a" * 40) / WEIGHTS
    with started(settings, restrict_paths=True) as engine:
        found = engine.open(CheckpointRef("hub", "org/mine")).result(WAIT)
        assert (found.name, found.reference) == ("org/mine", f"hub:org/mine@{'a' * 40}")
        (worker,) = (each for each in engine.workers() if each.fingerprint == found.fingerprint)
        assert worker.confinement == Confinement(True, True, True, ())
        assert answer(engine, found.fingerprint, "digests")[WEIGHTS] == digest(mine / WEIGHTS)
        assert {each.pid for each in engine.workers()} == {worker.pid}, "who opened it answers, and nobody else is left"
        assert read(engine, found, theirs) == REFUSED
        for path in (theirs, cache / "new", cache / "models--org--mine" / "blobs" / "new"):
            assert answer(engine, found.fingerprint, "attempt", what="write", target=str(path)) == REFUSED
        with pytest.raises(CheckpointError, match=r"^org/none is not in the hub's cache on this machine"):
            engine.open(CheckpointRef("hub", "org/none")).result(WAIT)


def test_archives_and_single_files_open_and_are_all_that_is_read(settings, two, tmp_path):
    mine, yours = two
    packed = pack(yours, tmp_path / "yours.zip")
    with started(settings) as engine:
        found = open_path(engine, packed)
        assert answer(engine, found.fingerprint, "digests")[WEIGHTS] == digest(yours / WEIGHTS)
        assert read(engine, found, packed) == REFUSED, "it was unpacked, and is read no more"
        single = open_path(engine, mine / WEIGHTS)
        assert answer(engine, single.fingerprint, "digests").keys() >= {WEIGHTS, "config.json", "vocab.txt"}
        assert read(engine, single, mine / "notes.md") == REFUSED
    asked = OpenRequest(CheckpointRef("path", str(packed)))
    assert {path for path, *_ in find_outside(asked, settings, restrict_paths=False)} == {packed}


def test_a_file_that_was_replaced_by_its_like_is_read_when_it_is_opened_again(settings, two):
    mine, _ = two
    with started(settings) as engine:
        before = open_path(engine, mine)
        data = (mine / WEIGHTS).read_bytes()
        (mine / "new").write_bytes(data)
        (mine / "new").rename(mine / WEIGHTS)
        with pytest.raises(CheckpointError, match="has changed since it was opened"):
            answer(engine, before.fingerprint, "digests")
        after = open_path(engine, mine)
        assert after.fingerprint == before.fingerprint
        assert answer(engine, after.fingerprint, "digests")[WEIGHTS] == hashlib.sha256(data).hexdigest()
        assert read(engine, after, mine / WEIGHTS) == DONE


def test_what_is_wrong_with_a_folder_is_still_said(settings, two, tmp_path):
    mine, yours = two
    (mine / "config.json").unlink()
    (mine / "config.json").symlink_to(yours / "config.json")
    (tmp_path / "empty").mkdir()
    for path, words in (
        (mine, "config.json is a link to a file outside the checkpoint's folder"),
        (tmp_path / "empty", "There are no checkpoint files here"),
        (tmp_path / "nowhere", "There is no file or folder"),
    ):
        with started(settings) as engine, pytest.raises(CheckpointError, match=words):
            open_path(engine, path)


def test_the_spare_serves_what_lies_in_the_store_and_in_the_package(settings, two):
    found = opened(upload_of(settings, two[1]), settings)[0].fingerprint
    demo = OpenRequest(CheckpointRef("demo", "demo-bert"))
    for request in (demo, OpenRequest(CheckpointRef("upload", found)), RunRequest(found, "package:function", {})):
        assert find_outside(request, settings, restrict_paths=True) == NOTHING
    with started(settings, spare=True) as engine:
        eventually(lambda: held(engine)[None].pid)  # it has one once it is started
        spare = held(engine)[None].pid
        told = engine.open(demo.reference).result(WAIT)
        assert held(engine)[told.fingerprint].pid == spare


def test_no_file_is_looked_for_where_nothing_is_confined(tmp_path, two):
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path / "home"), "INSPECTOR_CONFINEMENT": "off"})
    asked = OpenRequest(CheckpointRef("path", str(two[0])))
    assert find_outside(asked, settings, restrict_paths=False) == NOTHING


def test_a_worker_uses_no_number_of_an_upload_that_was_overwritten(settings, two):
    """Though its size, its inode and its time are those of before."""
    with started(settings) as engine:
        found = engine.open(upload_of(settings, two[1])).result(WAIT)
        path = settings.home / "checkpoints" / found.fingerprint / "weights" / WEIGHTS
        before = path.stat()
        with path.open("r+b") as file:
            file.seek(-100, 2)
            file.write(b"\x01" * 100)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(CheckpointError, match="is no longer what was uploaded"):
            answer(engine, found.fingerprint, "digests")
