"""What a worker stages reaches the store only as the server finds it: bytes, names and fingerprint."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import CheckpointError, WorkerError
from inspector.results.checkpoint import Opened
from inspector.serving.engine.wire import OpenRequest
from inspector.serving.engine.workers.worker_folder import WorkerFolder
from inspector.serving.storing import receiving
from inspector.serving.storing.marks import Told, write_told
from inspector.serving.storing.opening import open_checkpoint as draft_checkpoint
from inspector.serving.storing.registry import new_upload, write_upload
from inspector.store.manifests.entries import load_manifest
from inspector.store.opening import open_checkpoint
from inspector.store.origins.origin import Reach
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from tests.conftest import silent
from tests.store.store_builders import opened, small_checkpoint, upload_of

LIED = "they were rejected"


class Stage:
    """A worker's folder, and what a worker does in it, done by this process."""

    def __init__(self, settings) -> None:
        self.settings = settings
        self.desk = WorkerFolder(settings)

    def open(self, reference: CheckpointRef) -> Opened:
        self.desk.prepare(OpenRequest(reference))
        manifest, found = draft_checkpoint(
            reference, settings=self.desk.settings, progress=silent, restrict_paths=False
        )
        return Opened(manifest.fingerprint, str(found), manifest.name, manifest.warnings)

    def receive(self, told: Opened, reference: CheckpointRef, *, fetched: Path | None = None, **changes: Any) -> Opened:
        reach = Reach(replace(self.settings, **changes), restrict_paths=False, fetched=fetched)
        return receiving.receive(told, reference.origin, reach, own=self.desk.own, progress=silent)

    def staged(self, told: Opened, kind: str = "checkpoints") -> Path:
        return self.desk.own / kind / told.fingerprint


@pytest.fixture
def stage(settings):
    made = Stage(settings)
    yield made
    made.desk.close()


@pytest.fixture
def folder(tmp_path) -> Path:
    return small_checkpoint(tmp_path / "mini")


def archive_of(folder: Path, settings) -> CheckpointRef:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for path in folder.iterdir():
            file.write(path, f"mini/{path.name}")
    upload, place = new_upload(settings)
    write_upload(place, "mini.zip", packed.getvalue())
    return CheckpointRef("incoming", upload)


def references(settings, folder: Path) -> dict[str, CheckpointRef]:
    return {
        "upload": upload_of(settings, folder, prefix="mini/"),
        "archive": archive_of(folder, settings),
        "path": CheckpointRef("path", str(folder)),
        "demo": CheckpointRef("demo", "demo-bert"),
    }


def in_process(reference, settings, tmp_path):
    """The same as one process makes it that stages and stores."""
    alone = replace(settings, home=tmp_path / "alone")
    if reference.kind == "incoming":
        there = alone.home / "incoming" / reference.value
        there.mkdir(parents=True)
        for path in (settings.home / "incoming" / reference.value).iterdir():
            (there / path.name).write_bytes(path.read_bytes())
    manifest, _ = open_checkpoint(reference, settings=alone, progress=silent, restrict_paths=False)
    return manifest, alone.home


@pytest.mark.parametrize("kind", ["upload", "archive", "path", "demo"])
def test_the_store_gets_what_it_would_get_from_one_process(stage, settings, folder, tmp_path, kind):
    reference = references(settings, folder)[kind]
    expected, home = in_process(reference, settings, tmp_path)
    told = stage.open(reference)
    assert not (settings.home / "checkpoints").exists()
    found = stage.receive(told, reference)
    assert (found.fingerprint, found.name) == (expected.fingerprint, expected.name)
    assert found.reference == (f"upload:{expected.fingerprint}" if kind in {"upload", "archive"} else str(reference))
    manifest = load_manifest(found.fingerprint, settings=settings)
    place = "checkpoints" if kind in {"upload", "archive"} else "opened"
    for path in (home / place / expected.fingerprint).rglob("*"):
        if path.is_file() and path.name != "entry.json":
            same = settings.home / place / path.relative_to(home / place)
            assert same.read_bytes() == path.read_bytes(), path.name
    assert manifest.tensors == expected.tensors
    assert [file.digest for file in manifest.files] == [file.digest for file in expected.files]


def change_json(path: Path, change) -> None:
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))


def test_an_upload_has_the_fingerprint_of_its_bytes_whatever_its_worker_says(stage, settings, folder, tmp_path):
    """The server hashes what it received; nobody else is asked."""
    own = in_process(upload := upload_of(settings, folder), settings, tmp_path)[0].fingerprint
    victim = opened(upload_of(settings, small_checkpoint(tmp_path / "other", seed=1)), settings)[0].fingerprint
    stolen = (settings.home / "checkpoints" / victim / "manifest.json").read_bytes()
    told = stage.open(upload)
    forged = replace(told, fingerprint=victim)
    stage.staged(told).rename(stage.staged(forged))
    (stage.staged(forged) / "manifest.json").write_bytes(stolen)
    assert stage.receive(forged, upload).fingerprint == own
    assert (settings.home / "checkpoints" / victim / "manifest.json").read_bytes() == stolen
    assert {each.fingerprint for each in list_checkpoints(settings)} == {own, victim}


def test_a_folder_has_the_fingerprint_of_its_bytes_whatever_its_worker_says(stage, settings, folder, tmp_path):
    other = CheckpointRef("path", str(small_checkpoint(tmp_path / "other", seed=1)))
    victim = opened(other, settings, strangers=False)[0].fingerprint
    before = load_manifest(victim, settings=settings)
    reference = CheckpointRef("path", str(folder))
    own = in_process(reference, settings, tmp_path)[0].fingerprint
    told = stage.open(reference)
    forged = replace(told, fingerprint=victim)
    stage.staged(told, "opened").rename(stage.staged(forged, "opened"))
    assert stage.receive(forged, reference).fingerprint == own
    assert load_manifest(victim, settings=settings) == before


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "model.safetensors"])
def test_a_file_that_changes_while_a_folder_is_opened_is_named(stage, settings, folder, name):
    reference = CheckpointRef("path", str(folder))
    told = stage.open(reference)
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    with pytest.raises(CheckpointError, match=f"^{re.escape(name)} (has )?changed .*: open it again"):
        stage.receive(told, reference)
    assert not list_checkpoints(settings)


def test_an_archive_cannot_take_another_uploads_fingerprint(stage, settings, folder, tmp_path):
    """Else everybody who opens the other one would read the attacker's files."""
    victim = opened(upload_of(settings, small_checkpoint(tmp_path / "other", seed=1)), settings)[0].fingerprint
    stolen = (settings.home / "checkpoints" / victim / "manifest.json").read_bytes()
    reference = archive_of(folder, settings)
    told = stage.open(reference)
    forged = replace(told, fingerprint=victim)
    stage.staged(told).rename(stage.staged(forged))
    (stage.staged(forged) / "manifest.json").write_bytes(stolen)
    with pytest.raises(WorkerError, match=LIED):
        stage.receive(forged, reference)
    assert (settings.home / "checkpoints" / victim / "manifest.json").read_bytes() == stolen
    assert [each.fingerprint for each in list_checkpoints(settings)] == [victim]


def test_a_demo_cannot_be_replaced_by_somebodys_folder(stage, settings, folder):
    demo = stage.receive(stage.open(CheckpointRef("demo", "demo-bert")), CheckpointRef("demo", "demo-bert"))
    before = load_manifest(demo.fingerprint, settings=settings)
    reference = CheckpointRef("path", str(folder))
    told = stage.open(reference)
    forged = stage.desk.own / "opened" / demo.fingerprint
    stage.staged(told, "opened").rename(forged)
    (forged / "manifest.json").write_bytes((before.folder.parent / "manifest.json").read_bytes())
    with pytest.raises(WorkerError, match=LIED):
        stage.receive(replace(told, fingerprint=demo.fingerprint), reference)
    assert load_manifest(demo.fingerprint, settings=settings) == before


LIES = {
    "other bytes": lambda staged: (staged / "weights" / "model.safetensors").write_bytes(b"x" * 100),
    "a link for a weight": lambda staged: _relink(staged / "weights" / "model.safetensors"),
    "a link for a folder": lambda staged: _relink(staged / "weights"),
    "no manifest": lambda staged: (staged / "manifest.json").unlink(),
    "a link for the manifest": lambda staged: _relink(staged / "manifest.json"),
    "a wrong size": lambda staged: change_json(
        staged / "manifest.json", lambda stored: stored["files"][-1].update(nbytes=10**9)
    ),
    "a path elsewhere": lambda staged: change_json(
        staged / "manifest.json", lambda stored: stored["files"][-1].update(path="/etc/passwd")
    ),
    "a name that climbs": lambda staged: change_json(
        staged / "manifest.json", lambda stored: stored["files"][-1].update(name="../../x.safetensors")
    ),
}


def _relink(path: Path) -> None:
    moved = path.with_name("moved")
    path.rename(moved)
    path.symlink_to(moved)


@pytest.mark.parametrize("lie", LIES)
def test_an_unpacked_archive_is_not_stored_if_it_was_changed(stage, settings, folder, lie):
    reference = archive_of(folder, settings)
    told = stage.open(reference)
    LIES[lie](stage.staged(told))
    with pytest.raises(WorkerError, match=LIED):
        stage.receive(told, reference)
    assert list_checkpoints(settings) == ()


def test_bytes_that_the_server_received_come_from_no_worker(stage, settings, folder):
    """A worker that only reads an upload cannot put its own weights into the entry."""
    reference = upload_of(settings, folder, prefix="mini/")
    told = stage.open(reference)
    (stage.staged(told) / "weights").mkdir()
    (stage.staged(told) / "weights" / "model.safetensors").write_bytes(b"evil")
    (stage.staged(told) / "folder" / "tokenizer.json").write_bytes(b"evil")
    (stage.staged(told) / "folder" / "modeling_evil.py").write_bytes(b"evil")
    stage.receive(told, reference)
    (entry,) = (settings.home / "checkpoints").iterdir()
    assert (entry / "weights" / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert not (entry / "folder" / "modeling_evil.py").exists()
    if (folder / "tokenizer.json").exists():
        assert (entry / "folder" / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()


def test_what_is_stored_is_beyond_a_descriptor_that_a_worker_kept(stage, settings, folder):
    reference = CheckpointRef("path", str(folder))
    told = stage.open(reference)
    with (stage.staged(told, "opened") / "folder" / "config.json").open("r+b") as kept:
        found = stage.receive(told, reference)
        kept.write(b"evil")
    entry = settings.home / "opened" / found.fingerprint
    assert json.loads((entry / "folder" / "config.json").read_text())["model_type"] == "bert"


@pytest.mark.parametrize("kind", ["upload", "archive", "path"])
def test_a_manifest_that_changes_while_it_is_read_is_read_once(stage, folder, tmp_path, monkeypatch, kind):
    """Its worker may hold it open: what was checked is what counts."""
    settings = stage.settings
    reference = references(settings, folder)[kind]
    told = stage.open(reference)
    twin = tmp_path / "twin.safetensors"
    twin.write_bytes(b"\0" * (folder / "model.safetensors").stat().st_size)
    stamp = (twin.stat().st_mtime_ns, twin.stat().st_ino)
    read = receiving.read_document

    def changing(path: Path, **options: Any) -> Any:
        document = read(path, **options)

        def elsewhere(stored: Any) -> None:
            (file,) = (each for each in stored["files"] if each["name"] == "model.safetensors")
            file.update(path=str(twin), stamp=stamp)

        change_json(path, elsewhere)
        return document

    monkeypatch.setattr(receiving, "read_document", changing)
    found = stage.receive(told, reference)
    manifest = load_manifest(found.fingerprint, settings=settings)
    assert manifest.paths["model.safetensors"].read_bytes() == (folder / "model.safetensors").read_bytes()


def test_a_weight_elsewhere_is_the_one_in_the_folder_that_was_asked_for(stage, settings, folder, tmp_path):
    reference = CheckpointRef("path", str(folder))
    told = stage.open(reference)
    twin = tmp_path / "twin.safetensors"
    os.link(folder / "model.safetensors", twin)
    stamp = (twin.stat().st_mtime_ns, twin.stat().st_ino)

    def elsewhere(stored: Any) -> None:
        (file,) = (each for each in stored["files"] if each["name"] == "model.safetensors")
        file.update(path=str(twin), stamp=stamp)

    change_json(stage.staged(told, "opened") / "manifest.json", elsewhere)
    with pytest.raises(WorkerError, match=LIED):
        stage.receive(told, reference)


def test_an_upload_from_the_shared_store_must_be_the_one_that_was_asked_for(stage, settings, folder):
    reference = upload_of(settings, folder, prefix="mini/")
    told = stage.open(reference)
    write_told(settings.home / "incoming" / reference.value, Told("0" * 64, "name", ()))
    with pytest.raises(CheckpointError, match="not the upload that was requested"):
        stage.receive(told, reference)


def test_there_must_be_room_for_what_an_archive_held(stage, settings, folder):
    reference = archive_of(folder, settings)
    told = stage.open(reference)
    with pytest.raises(CheckpointError, match="The store is full"):
        stage.receive(told, reference, store_nbytes=1000)
    assert list_checkpoints(settings) == ()


@pytest.mark.parametrize("kind", ["demo", "upload", "path", "hub"])
def test_only_what_arrives_becomes_an_upload(stage, settings, folder, kind):
    """Of a folder the worker goes on: it would change weights after they were hashed, through what it holds open."""
    told = stage.open(archive_of(folder, settings))
    values = {"demo": "demo-bert", "upload": "f" * 64, "path": str(folder), "hub": "org/name"}
    with pytest.raises(WorkerError, match=LIED):
        stage.receive(told, CheckpointRef(kind, values[kind]), fetched=folder)
    assert list_checkpoints(settings) == ()
