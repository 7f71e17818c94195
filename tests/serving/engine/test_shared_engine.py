"""Engines of several servers and a shared store: what is opened on one is answered by another."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import CancelledError, CheckpointError
from inspector.results.plain import to_json
from inspector.serving import commands
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.shared_store_sync import EngineCallbacks, SharedStoreSync
from inspector.serving.engine.workers.process import WorkerProcess
from inspector.serving.log import digest
from inspector.serving.storing import registry
from inspector.serving.storing.marks import veiled
from inspector.serving.storing.owners import Owned, Requester, write_owners
from inspector.serving.storing.shared import publishing
from inspector.serving.storing.shared.remote import Remote
from inspector.serving.storing.uploads import list_uploads
from inspector.settings import Settings, read_settings
from inspector.store.keeping.quota import account, used_nbytes
from inspector.store.keeping.shared import is_marked, store_mark
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from tests.serving.engine.engine_harness import WAIT, eventually
from tests.store.s3_server import BUCKET, KEY, SECRET, environment, running_s3
from tests.store.store_builders import pack, small_checkpoint, upload_of, uploaded

OLD = 1_000_000_000.0  # seconds since 1970
SECRETS = (KEY, SECRET, BUCKET)


@contextmanager
def engine_of(settings: Settings):
    engine = LocalEngine(settings, spare=False)
    try:
        yield engine
    finally:
        engine.close()


@pytest.fixture
def folder(tmp_path) -> Path:
    return small_checkpoint(tmp_path / "mini")


@pytest.fixture
def shared_folder(tmp_path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def server(tmp_path: Path, name: str, store: Any) -> Settings:
    home = str(tmp_path / name)
    return read_settings({"INSPECTOR_HOME": home, "INSPECTOR_STORE": str(store)})


def seen_by_workers(engine: LocalEngine) -> str:
    """The environment and the command line of every worker process."""
    found = [Path(f"/proc/{worker.pid}") for worker in engine.workers()]
    assert found
    return "".join(
        (process / name).read_bytes().decode("utf-8", "replace") for process in found for name in ("environ", "cmdline")
    )


def test_one_server_answers_what_was_uploaded_to_another(tmp_path, monkeypatch, folder, caplog):
    """Behind a real S3 API: the same answer, after a restart and after making room as well."""
    with running_s3() as address:
        for name, value in environment(address).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("INSPECTOR_STORE", f"s3://{BUCKET}/all")
        first, second = (server(tmp_path, name, f"s3://{BUCKET}/all") for name in ("a", "b"))
        with engine_of(first) as engine:
            opened = engine.open(upload_of(first, folder, prefix="mine/")).result(WAIT)
            assert opened.warnings == ()
            own = to_json(engine.run(opened.fingerprint, "overview").result(WAIT))
            assert not any(secret in seen_by_workers(engine) for secret in SECRETS)
        shutil.rmtree(first.home)

        with engine_of(second) as engine:
            assert [each.name for each in list_uploads(second, Requester())] == ["mine"]
            found = engine.run(opened.fingerprint, "overview").result(WAIT)
            assert to_json(found) == own
            assert not any(secret in seen_by_workers(engine) for secret in SECRETS)
            assert is_marked(second.home / "checkpoints" / opened.fingerprint, second)
            again = engine.open(CheckpointRef("upload", opened.fingerprint)).result(WAIT)
            assert again == opened

            assert engine.release(opened.fingerprint)
            registry.delete_checkpoint(opened.fingerprint, settings=second)  # to make room
            link = CheckpointRef("upload", opened.fingerprint[:16])
            assert engine.open(link).result(WAIT) == opened
            assert engine.run(opened.fingerprint, "tokenize", texts=["a"]).result(WAIT)
            assert not list((second.home / "incoming").iterdir())
    assert not any(secret in caplog.text for secret in SECRETS)


def test_workers_are_told_nothing_of_the_store(tmp_path, shared_folder, folder, monkeypatch):
    settings = server(tmp_path, "a", shared_folder)
    send, sent = WorkerProcess.send, []
    monkeypatch.setattr(WorkerProcess, "send", lambda worker, data: (sent.append(data), send(worker, data)))
    with engine_of(settings) as engine:
        opened = engine.open(upload_of(settings, folder)).result(WAIT)
        assert engine.run(opened.fingerprint, "overview").result(WAIT)
    assert store_mark(settings).encode() in b"".join(sent)
    assert str(shared_folder).encode() not in b"".join(sent)
    entry = tmp_path / "entry"
    entry.mkdir()
    assert not is_marked(entry, veiled(settings))


def test_an_upload_that_cannot_be_shared_opens_and_says_so(tmp_path, folder):
    store = tmp_path / "unmounted"
    settings = server(tmp_path, "a", store)
    with engine_of(settings) as engine:
        opened = engine.open(upload_of(settings, folder, prefix="mine/")).result(WAIT)
        assert opened.warnings == (
            "The upload is only on this server so far, and not yet in the shared store: the "
            "shared store's folder does not exist: create it, or mount it again.",
        )
        assert engine.run(opened.fingerprint, "overview").result(WAIT)

        store.mkdir()
        again = engine.open(CheckpointRef("upload", opened.fingerprint)).result(WAIT)
        assert again.warnings == ()
    assert (store / "checkpoints" / f"{opened.fingerprint}.json").is_file()


def test_copies_make_room_for_what_an_archive_holds(tmp_path, folder, shared_folder):
    """What an archive unpacks to is known to its worker alone, which does not know the shared store."""
    first, second = (server(tmp_path, name, shared_folder) for name in ("a", "b"))
    with engine_of(first) as engine:
        opened = engine.open(upload_of(first, folder, prefix="mine/")).result(WAIT)
    with engine_of(second) as engine:
        assert engine.run(opened.fingerprint, "overview").result(WAIT)
    copy = second.home / "checkpoints" / opened.fingerprint
    for name in (".lock", "manifest.json"):
        os.utime(copy / name, (OLD, OLD))
    other = small_checkpoint(tmp_path / "other", seed=1)
    unpacked = sum(path.stat().st_size for path in other.iterdir())
    packed = pack(other, tmp_path / "other.zip")
    full = replace(second, store_nbytes=used_nbytes(second) + unpacked // 2)
    reference = uploaded(full, {packed.name: packed.read_bytes()})
    with engine_of(full) as engine:
        found = engine.open(reference).result(WAIT)
        assert engine.run(found.fingerprint, "overview").result(WAIT)
    assert [each.fingerprint for each in list_checkpoints(full)] == [found.fingerprint]


class TwoLooks(threading.Event):
    """Ends what waits for it at the second time, and takes no time."""

    looks = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.looks += 1
        return self.looks > 2


def share(settings: Settings) -> None:
    """What an engine does every few seconds."""
    hooks = EngineCallbacks(refuse, refuse, refuse)
    SharedStoreSync(settings, hooks).keep_sharing(TwoLooks())


def refuse(*args: Any) -> Any:
    raise AssertionError(args)


def test_an_upload_is_shared_as_soon_as_the_store_is_there(tmp_path, folder, caplog):
    caplog.set_level("INFO", "inspector.server")
    store = tmp_path / "unmounted"
    first, second = (server(tmp_path, name, store) for name in ("a", "b"))
    with engine_of(first) as engine:
        opened = engine.open(upload_of(first, folder, prefix="mine/")).result(WAIT)
    facts = {record.message: getattr(record, "facts", {}) for record in caplog.records}
    assert facts["not shared"]["checkpoint"] == digest(opened.fingerprint)
    assert "folder does not exist" in facts["not shared"]["reason"]
    share(first)
    (told,) = account(first).warnings
    assert told.startswith("Not yet in the shared store: 1 upload.")
    assert [each.shared for each in account(first).uploads] == [False]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INSPECTOR_")}
    kept |= {"INSPECTOR_HOME": str(first.home), "INSPECTOR_STORE": str(store), "COLUMNS": "400"}
    printed = subprocess.run(
        [sys.executable, "-m", "inspector", "store"], env=kept, capture_output=True, text=True, check=True
    ).stdout
    assert "Not yet in the shared store: 1 upload." in printed
    store.mkdir()
    share(first)
    assert account(first).warnings == ()
    assert [each.shared for each in account(first).uploads] == [True]
    assert [each.name for each in list_uploads(second, Requester())] == ["mine"]
    noted = [getattr(record, "facts", {}) for record in caplog.records if record.message == "shared"]
    assert noted == [{"checkpoint": digest(opened.fingerprint)}]
    with engine_of(second) as engine:
        assert engine.open(CheckpointRef("upload", opened.fingerprint)).result(WAIT).fingerprint == opened.fingerprint


def test_an_upload_with_an_owner_stays_where_it_is(tmp_path, folder, shared_folder):
    aside = shared_folder.rename(tmp_path / "aside")
    settings = server(tmp_path, "a", shared_folder)
    with engine_of(settings) as engine:
        opened = engine.open(upload_of(settings, folder, prefix="mine/")).result(WAIT)
    assert account(settings).warnings
    aside.rename(shared_folder)
    entry = settings.home / "checkpoints" / opened.fingerprint
    write_owners(entry, {"a" * 64: Owned("hers", "2026-01-01T00:00:00+00:00")})
    assert account(settings).warnings == ()
    share(settings)
    assert not is_marked(entry, settings)
    assert not [*shared_folder.rglob("*.json")]


def test_what_was_private_stays_so_when_a_store_is_set(tmp_path, folder, shared_folder, monkeypatch, capsys):
    alone = read_settings({"INSPECTOR_HOME": str(tmp_path / "a")})
    with engine_of(alone) as engine:
        engine.open(upload_of(alone, folder, prefix="mine/")).result(WAIT)
    settings = server(tmp_path, "a", shared_folder)
    assert account(settings).warnings == ()
    share(settings)
    assert not [*shared_folder.rglob("*.json")]

    monkeypatch.setattr(commands, "settings", lambda: settings)
    began: list[Any] = []
    monkeypatch.setattr(SharedStoreSync, "keep_sharing", lambda *given: began.append(given))
    commands.limits(as_json=True)
    assert "Store size" in capsys.readouterr().out
    assert began == []


def test_an_upload_that_cannot_be_shared_keeps_no_other_one_waiting(tmp_path, folder, caplog, monkeypatch):
    caplog.set_level("INFO", "inspector.server")
    store = tmp_path / "unmounted"
    settings = server(tmp_path, "a", store)
    with engine_of(settings) as engine:
        for each in (folder, small_checkpoint(tmp_path / "other", seed=1)):
            engine.open(upload_of(settings, each, prefix=f"{each.name}/")).result(WAIT)
    caplog.clear()
    store.mkdir()
    damaged, whole = (each.fingerprint for each in list_checkpoints(settings))
    (weights,) = (settings.home / "checkpoints" / damaged).rglob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    publish, tried = publishing.publish, []
    monkeypatch.setattr(publishing, "publish", lambda fp, **rest: (tried.append(fp), publish(fp, **rest)))
    share(settings)
    assert tried == [damaged, whole]  # of two looks, the second one is too early
    assert {each.fingerprint: each.shared for each in account(settings).uploads} == {damaged: False, whole: True}
    (told,) = account(settings).warnings
    assert told.startswith("Not yet in the shared store: 1 upload. The server keeps trying")
    shares = [record for record in caplog.records if record.message in {"shared", "not shared"}]
    facts = [(record.message, getattr(record, "facts", {})) for record in shares]
    assert facts[1] == ("shared", {"checkpoint": digest(whole)})
    assert facts[0][0] == "not shared"
    assert "differs from the upload" in facts[0][1]["reason"]
    assert len(facts) == 2


def test_what_is_nowhere_is_refused_and_asked_for_anew_later(tmp_path, shared_folder, folder):
    first, second = (server(tmp_path, name, shared_folder) for name in ("a", "b"))
    with engine_of(first) as engine:
        opened = engine.open(upload_of(first, folder, prefix="mine/")).result(WAIT)
    (listed,) = (shared_folder / "checkpoints").iterdir()
    aside = listed.rename(tmp_path / listed.name)
    with engine_of(second) as engine:
        for ask in (
            lambda: engine.run(opened.fingerprint, "overview"),
            lambda: engine.open(CheckpointRef("upload", opened.fingerprint)),
            lambda: engine.run("0" * 64, "compare", other=opened.fingerprint),
        ):
            with pytest.raises(CheckpointError, match="is neither on this server nor in the shared"):
                ask().result(WAIT)
        aside.rename(listed)
        assert engine.open(CheckpointRef("upload", opened.fingerprint)).result(WAIT) == opened


def test_fetching_shows_its_progress_and_can_be_stopped(tmp_path, shared_folder, folder,
                                                        monkeypatch):  # fmt: skip
    first, second = (server(tmp_path, name, shared_folder) for name in ("a", "b"))
    with engine_of(first) as engine:
        opened = engine.open(upload_of(first, folder, prefix="mine/")).result(WAIT)
    go_on, pieces = threading.Event(), Remote.pieces

    def slow(remote: Remote, path: str):
        yield from pieces(remote, path)
        go_on.wait(WAIT)
        yield b""

    monkeypatch.setattr(Remote, "pieces", slow)
    with engine_of(second) as engine:
        job = engine.run(opened.fingerprint, "overview")
        eventually(lambda: job.progress.text.startswith("Fetching mine: 0 of "))
        opening = engine.open(CheckpointRef("upload", opened.fingerprint))
        opening.cancel()
        go_on.set()
        with pytest.raises(CancelledError):
            opening.result(WAIT)
        with pytest.raises(CancelledError):
            job.result(WAIT)
        eventually(lambda: not list((second.home / "incoming").iterdir()))
        assert engine.run(opened.fingerprint, "overview").result(WAIT)
