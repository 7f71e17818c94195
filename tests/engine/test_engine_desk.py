"""A worker reads what it was asked about, writes its own folder, and the server alone publishes."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from inspector.engine.desk import Desk
from inspector.engine.local import LocalEngine
from inspector.engine.wire import OpenRequest, RunRequest
from inspector.settings import read_settings
from inspector.store.hashing import HASHES
from inspector.store.keeping.arrays import ArrayCache
from inspector.store.keeping.holding import is_used
from inspector.store.keeping.quota import account
from inspector.store.manifests import results_folder
from inspector.store.reference import CheckpointRef
from inspector.store.registry import delete_checkpoint, list_checkpoints, new_upload, rename_checkpoint, write_upload
from tests.engine.engine_attempts import DONE
from tests.engine.engine_harness import answer, eventually, running
from tests.store.store_builders import opened, small_checkpoint, upload_of
from tests.store.test_store_receiving import archive_of

REFUSED = "PermissionError"


@pytest.fixture
def two(settings, tmp_path) -> tuple[str, str]:
    """Uploads of two people."""
    folders = (small_checkpoint(tmp_path / name, seed=seed) for seed, name in enumerate(("mine", "yours")))
    mine, yours = (opened(upload_of(settings, folder), settings)[0].fingerprint for folder in folders)
    return mine, yours


@pytest.fixture
def desk(settings):
    made = Desk(settings)
    yield made
    made.close()


def ask(fingerprint: str, **parameters) -> RunRequest:
    return RunRequest(fingerprint, "package:function", parameters)


def names_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_worker_reads_its_own_checkpoint_and_no_other_upload(settings, two):
    mine, yours = two
    entries = {name: settings.home / "checkpoints" / name for name in two}
    arriving, folder = new_upload(settings)
    write_upload(folder, "secret.bin", b"x")
    with running(home=settings.home) as engine:
        given = Path(answer(engine, mine, "environment")["NUMBA_CACHE_DIR"]).parents[1] / "given"
        for path, expected in (
            (given / "checkpoints" / mine / "weights" / "model.safetensors", DONE),
            (given / "checkpoints" / mine / "manifest.json", DONE),
            (given / "checkpoints" / yours / "manifest.json", "FileNotFoundError"),
            (entries[mine] / "manifest.json", REFUSED),
            (entries[yours] / "manifest.json", REFUSED),
            (entries[yours] / "weights" / "model.safetensors", REFUSED),
            (folder / "_secret.bin", REFUSED),
        ):
            assert answer(engine, mine, "attempt", what="read", target=str(path)) == expected, path
        for path in (given / "x", given / "checkpoints" / mine / "manifest.json", entries[mine] / "x",
                     settings.home / "maps" / "x", settings.home / "temporary" / "x"):  # fmt: skip
            path.parent.mkdir(exist_ok=True)
            assert answer(engine, mine, "attempt", what="write", target=str(path)) == REFUSED, path
    with running(home=settings.home, confinement="off") as engine:
        path = entries[yours] / "weights" / "model.safetensors"
        assert answer(engine, mine, "attempt", what="read", target=str(path)) == DONE
    assert arriving


def test_folders_of_other_workers_are_out_of_reach(settings, two):
    with running(home=settings.home) as engine:
        theirs = Path(answer(engine, two[1], "environment")["NUMBA_CACHE_DIR"]).parent
        assert theirs.is_dir()
        for what, path in (("read", theirs.parent / ".lock"), ("write", theirs / "x")):
            assert answer(engine, two[0], "attempt", what=what, target=str(path)) == REFUSED


def test_what_is_given_is_what_the_request_names(settings, two, desk):
    mine, yours = two
    desk.prepare(ask(mine))
    assert {path.name for path in (desk.given / "checkpoints").iterdir()} == {mine}
    assert names_below(desk.given / "checkpoints" / mine) == {
        *("manifest.json", "entry.json", "weights/model.safetensors"),
        *(f"folder/{path.name}" for path in (settings.home / "checkpoints" / mine / "folder").iterdir()),
    }
    desk.prepare(ask(mine, other=yours))
    assert {path.name for path in (desk.given / "checkpoints").iterdir()} == {mine, yours}
    desk.prepare(OpenRequest(CheckpointRef("upload", yours[:12])))
    delete_checkpoint(yours, settings=settings)
    desk.prepare(ask(mine, other=yours))
    assert {path.name for path in (desk.given / "checkpoints").iterdir()} == {mine}


def test_a_new_name_is_given_with_the_next_request(settings, two, desk):
    desk.prepare(ask(two[0]))
    rename_checkpoint(two[0], "renamed", settings=settings)
    desk.prepare(ask(two[0]))
    entry = json.loads((desk.given / "checkpoints" / two[0] / "entry.json").read_text())
    assert entry["name"] == "renamed"


def test_what_a_worker_was_given_counts_as_used_until_it_ends_and_once(settings, two):
    entry = settings.home / "checkpoints" / two[0]
    before = account(settings).used_nbytes
    desk = Desk(settings)
    desk.prepare(ask(two[0]))
    os.utime(entry / ".lock", (1, 1))
    os.utime(entry / "manifest.json", (1, 1))
    assert is_used(entry)
    assert account(settings).used_nbytes == before
    desk.close()
    assert not is_used(entry)
    assert not list((settings.home / "workers").iterdir())


def test_results_reach_later_workers_of_the_same_checkpoint_alone(settings, two, desk):
    mine, yours = two
    desk.prepare(ask(mine))
    key, found = {"n": 1}, {"x": np.arange(3)}
    for fingerprint in two:  # a worker that was taken over writes for another checkpoint, too
        ArrayCache(results_folder(fingerprint, settings=desk.settings)).put(key, found)
    own = results_folder(mine, settings=desk.settings)
    (own / HASHES).write_text("{}\n")
    (own / "x.py").write_text("run me")
    (own / ("0" * 64 + ".arrays")).symlink_to("/etc/passwd")
    desk.collect()
    kept = results_folder(mine, settings=settings)
    assert {path.suffix for path in kept.iterdir()} == {".arrays", ".json"}
    assert not any(path.is_symlink() for path in kept.iterdir())
    assert not results_folder(yours, settings=settings).exists()
    later = Desk(settings)
    later.prepare(ask(mine))
    again = ArrayCache(results_folder(mine, settings=later.settings)).get(key)
    later.close()
    assert again is not None
    assert again["x"].tolist() == [0, 1, 2]


@contextmanager
def started(settings):
    """An engine on the store and the analyses themselves."""
    engine = LocalEngine(settings, spare=False)
    try:
        yield engine
    finally:
        engine.close()


def test_an_upload_is_staged_by_a_worker_and_published_by_the_server(settings, tmp_path):
    folder = small_checkpoint(tmp_path / "mini")
    fingerprint = opened(upload_of(settings, folder), settings)[0].fingerprint
    before = names_below(settings.home / "checkpoints" / fingerprint)
    document = (settings.home / "checkpoints" / fingerprint / "manifest.json").read_text()
    delete_checkpoint(fingerprint, settings=settings)
    arrived = upload_of(settings, folder)
    with started(settings) as engine:
        answered = engine.open(arrived).result(120)
        assert answered.fingerprint == fingerprint
        assert answered.reference == f"upload:{fingerprint}"
        assert names_below(settings.home / "checkpoints" / fingerprint) - {".lock"} == before - {".lock"}
        assert (settings.home / "checkpoints" / fingerprint / "manifest.json").read_text() == document
        assert [each.name for each in list_checkpoints(settings)] == [answered.name]
        assert not list((settings.home / "incoming").iterdir())
        assert [worker.fingerprint for worker in engine.workers()] == [fingerprint]
        assert answer(engine, fingerprint, "overview").name == answered.name
        delete_checkpoint(fingerprint, settings=settings)
        engine.forget(fingerprint)
        assert engine.open(archive_of(folder, settings)).result(120).fingerprint == fingerprint
        assert engine.workers() == (), "it may hold the files open"
        assert engine.endings() == ()
    eventually(lambda: not list((settings.home / "workers").iterdir()))


def test_settings_of_a_worker_name_its_own_folder(desk, settings):
    assert desk.settings.home == desk.own
    assert desk.settings.readable == desk.given
    assert read_settings({"INSPECTOR_HOME": str(settings.home)}).readable == settings.home
