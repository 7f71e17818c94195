"""A worker reads what it was asked about, writes its own folder, and the server alone publishes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from inspector.sandbox.disk_usage import kept_nbytes
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.wire import OpenRequest, RunRequest
from inspector.serving.engine.workers.worker_folder import WorkerFolder
from inspector.serving.storing.registry import delete_checkpoint, new_upload, rename_checkpoint, write_upload
from inspector.settings import read_settings
from inspector.store.hashing import HASHES
from inspector.store.keeping.arrays import ArrayCache
from inspector.store.keeping.holding import is_used
from inspector.store.keeping.quota import account
from inspector.store.manifests.entries import results_folder
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from tests.serving.engine.engine_attempts import DONE
from tests.serving.engine.engine_harness import answer, eventually, running
from tests.store.store_builders import opened, small_checkpoint, upload_of
from tests.store.test_store_receiving import archive_of

REFUSED = "PermissionError"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def two(settings, tmp_path) -> tuple[str, str]:
    """Uploads of two people."""
    folders = (small_checkpoint(tmp_path / name, seed=seed) for seed, name in enumerate(("mine", "yours")))
    mine, yours = (opened(upload_of(settings, folder), settings)[0].fingerprint for folder in folders)
    return mine, yours


@pytest.fixture
def desk(settings):
    made = WorkerFolder(settings)
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
    desk = WorkerFolder(settings)
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
    later = WorkerFolder(settings)
    later.prepare(ask(mine))
    again = ArrayCache(results_folder(mine, settings=later.settings)).get(key)
    later.close()
    assert again is not None
    assert again["x"].tolist() == [0, 1, 2]


def test_a_comparison_changes_nothing_of_the_second_checkpoint(settings, two, desk):
    """Else whoever uploads a checkpoint that takes its worker over, and compares it, says what others are told."""
    mine, yours = two
    theirs = results_folder(yours, settings=settings)
    ArrayCache(theirs).put({"n": 1}, {"x": np.arange(3)})
    (theirs / HASHES).write_text("{}\n")
    before = {path.name: path.read_bytes() for path in theirs.iterdir()}
    desk.prepare(ask(mine, other=yours))
    given = results_folder(yours, settings=desk.settings)
    assert {path.name: path.read_bytes() for path in given.iterdir()} == before
    for path in given.iterdir():
        path.write_bytes(b"evil")
    (given / ("0" * 64 + ".arrays")).write_bytes(b"evil")
    desk.collect()
    assert {path.name: path.read_bytes() for path in theirs.iterdir()} == before


def test_a_result_changes_no_more_when_it_is_in_the_store(settings, two, desk):
    desk.prepare(ask(two[0]))
    own, there = (results_folder(two[0], settings=each) for each in (desk.settings, settings))
    own.mkdir(parents=True)
    name = "0" * 64 + ".arrays"
    (own / name).write_bytes(b"as it was")
    desk.collect()
    with (own / name).open("r+b") as kept:
        kept.write(b"evil")
        kept.truncate(10**9)
    assert (there / name).read_bytes() == b"as it was"


def test_no_result_is_taken_that_no_reader_would_take(settings, two, desk):
    """A file may have a size and no bytes: it would count, and others' would go to make room for it."""
    desk.prepare(ask(two[0]))
    own, there = (results_folder(two[0], settings=each) for each in (desk.settings, settings))
    own.mkdir(parents=True)
    for name, nbytes in ((HASHES, 10**8), ("0" * 64 + ".arrays", 10**10)):
        with (own / name).open("wb") as file:
            file.truncate(nbytes)
    os.mkfifo(own / ("1" * 64 + ".arrays"))
    desk.collect()
    assert not [*there.glob("*")]


def test_a_file_without_bytes_in_a_workers_folder_takes_no_room(settings, two, desk):
    before = account(settings).used_nbytes
    with (desk.own / "sparse").open("wb") as file:
        file.truncate(10**12)
    (desk.own / ".reserved").touch()
    os.truncate(desk.own / ".reserved", 10**12)
    assert account(settings).used_nbytes - before < 10**6
    (desk.own / "real").write_bytes(b"x" * 10**6)
    assert account(settings).used_nbytes - before >= 10**6


def test_a_second_name_hides_no_file_of_a_workers(settings, two, desk):
    before = account(settings).used_nbytes
    (desk.own / "real").write_bytes(b"x" * 10**6)
    os.link(desk.own / "real", desk.own / "given")
    assert 10**6 <= account(settings).used_nbytes - before < 1.1 * 10**6


def test_what_a_worker_keeps_is_counted_once_and_as_the_disk_has_it(desk):
    with (desk.own / "sparse").open("wb") as file:
        file.truncate(10**12)
    (desk.own / "real").write_bytes(b"x" * 10**6)
    os.link(desk.own / "real", desk.own / "twin")
    (desk.own / "away").symlink_to("/usr")
    folders = 4096 * sum(path.is_dir() for path in desk.own.rglob("*"))
    assert 10**6 <= kept_nbytes(desk.own, 0) <= 10**6 + folders + 10_000


def test_a_removed_file_counts_while_it_is_open_if_it_was_the_workers(desk, tmp_path):
    with (desk.own / "gone").open("wb", buffering=0) as gone, (tmp_path / "other").open("wb", buffering=0) as other:
        for file in (gone, other):
            file.write(b"x" * 10**6)
            Path(file.name).unlink()
        assert 10**6 <= kept_nbytes(desk.own, os.getpid()) < 1.5 * 10**6
    assert kept_nbytes(desk.own, os.getpid()) < 10**6


def test_a_folder_that_cannot_be_looked_through_is_too_large(desk):
    make_deep(desk.own, 3_000)
    assert kept_nbytes(desk.own, 0) == math.inf


def test_too_many_files_are_too_large(desk):
    for number in range(12):
        (desk.own / str(number)).touch()
    assert kept_nbytes(desk.own, 0, most=10) == math.inf
    assert kept_nbytes(desk.own, 0) < math.inf


def make_deep(folder: Path, depth: int) -> None:
    """Folders in folders, whose path no call takes as a whole."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_folders_in_folders_stop_neither_the_count_nor_the_end(settings, two):
    desk = WorkerFolder(settings)
    make_deep(desk.own, 5_000)
    assert account(settings).used_nbytes > 0
    desk.close()
    assert not list((settings.home / "workers").iterdir())


def test_a_closed_folder_is_removed_with_its_worker(settings):
    """Of an ordinary user's server; root may enter all."""
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from inspector.store.files import remove_folder\n"
        "folder = Path(sys.argv[1]) / 'closed'\n"
        "(folder / 'a' / 'b').mkdir(parents=True)\n"
        "(folder / 'a' / 'b' / 'file').touch()\n"
        "for each in (folder / 'a' / 'b', folder / 'a', folder): each.chmod(0)\n"
        "remove_folder(folder)\n"
        "print(os.listdir(sys.argv[1]))\n"
    )
    settings.home.mkdir()
    command = [sys.executable, "-c", program, str(settings.home)]
    if os.geteuid() == 0:  # keep the number, and lose what root may
        command[1:3] = ["-c", "import ctypes; from inspector.sandbox.privileges import drop_privileges\n"
                        "drop_privileges(None)\n" + NO_CAPABILITIES + program]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


NO_CAPABILITIES = (
    "from inspector.sandbox.privileges import VERSION, _Header, _Set\n"
    "assert ctypes.CDLL(None).capset(ctypes.byref(_Header(VERSION, 0)), (_Set * 2)()) == 0\n"
)


def test_a_worker_that_ends_while_it_is_given_something_holds_nothing(settings, two):
    entry = settings.home / "checkpoints" / two[0]
    desk = WorkerFolder(settings)
    desk.prepare(ask(two[0]))
    desk.close()
    desk.prepare(ask(two[0]))
    for path in (entry / ".lock", entry / "manifest.json"):
        os.utime(path, (1, 1))
    assert not is_used(entry)


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
