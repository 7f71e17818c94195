"""The list of uploads: stored once, found after a restart, never half-written."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from inspector.errors import CheckpointError
from inspector.serving.storing import registry
from inspector.serving.storing.registry import (
    delete_checkpoint,
    discard_upload,
    incoming_folder,
    new_upload,
    pin_checkpoint,
    read_names,
    rename_checkpoint,
    sweep,
    write_upload,
)
from inspector.store import files
from inspector.store.manifests.entries import load_manifest
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from tests.sentences import DAMAGED_ENTRY
from tests.store.store_builders import opened, small_checkpoint, upload_of

STAGE = """
import os, signal, sys
import inspector.serving.storing.origins
from inspector.settings import settings
from inspector.store import staging
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef

def progress(fraction, text):
    if text.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

manifest, _ = open_checkpoint(CheckpointRef("incoming", sys.argv[1]), settings=settings(),
                              progress=progress, restrict_paths=True)
print(manifest.fingerprint)
"""


SWEEP = """
from inspector.settings import settings
from inspector.serving.storing.registry import sweep
sweep(settings())
"""
READ = ("config.json", "model.safetensors", "vocab.txt")
GARBAGE = [b"", b"\xff\xfe\x00", b"[" * 50_000, b"{}", b"[1]", b'{"form']


@pytest.fixture
def folder(tmp_path) -> Path:
    return small_checkpoint(tmp_path / "mini")


@pytest.fixture
def fingerprint(folder, settings) -> str:
    """An upload in the store."""
    return opened(upload_of(settings, folder, prefix="mini/"), settings)[0].fingerprint


@pytest.fixture
def other(settings, tmp_path) -> str:
    """Another upload in the store."""
    folder = small_checkpoint(tmp_path / "other", seed=1)
    return opened(upload_of(settings, folder, prefix="other/"), settings)[0].fingerprint


def stage_elsewhere(settings, upload: str, die_at: str = "never") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STAGE, upload, die_at],
        env=os.environ | {"INSPECTOR_HOME": str(settings.home)},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def names_listed(settings) -> list[str]:
    return [stored.name for stored in list_checkpoints(settings)]


def test_the_same_upload_is_stored_once_and_keeps_its_name(folder, settings, fingerprint):
    rename_checkpoint(fingerprint, "mine", settings=settings)
    again, reference = opened(upload_of(settings, folder, prefix="other/"), settings)
    assert reference == CheckpointRef("upload", fingerprint)
    assert again.name == "mine"
    assert names_listed(settings) == ["mine"]
    assert not list((settings.home / "incoming").iterdir())
    assert not list((settings.home / "temporary").iterdir())


def test_what_is_listed_opens(settings, fingerprint, folder):
    (stored,) = list_checkpoints(settings)
    held = sum((folder / name).stat().st_size for name in READ)
    assert (stored.fingerprint, stored.name) == (fingerprint, "mini")
    assert stored.nbytes == held
    for digits in (12, 64):
        manifest, _ = opened(CheckpointRef.parse(f"upload:{fingerprint[:digits]}"), settings)
        assert manifest.fingerprint == fingerprint


def test_delete_is_complete(settings, fingerprint):
    delete_checkpoint(fingerprint, settings=settings)
    assert list_checkpoints(settings) == ()
    assert not list((settings.home / "checkpoints").iterdir())
    with pytest.raises(CheckpointError, match="This checkpoint is no longer in the store"):
        delete_checkpoint(fingerprint, settings=settings)
    with pytest.raises(CheckpointError) as error:
        opened(CheckpointRef("upload", fingerprint), settings)
    assert str(error.value) == (
        f"The upload {fingerprint[:12]}… is no longer in the store: pick one from the list, or upload it again."
    )


@pytest.mark.parametrize("name", ["../../x", "", "a/b", "." * 64, "0" * 63, "0" * 64])
def test_only_entries_are_deleted(settings, fingerprint, name):
    with pytest.raises(CheckpointError, match="This checkpoint is no longer in the store"):
        delete_checkpoint(name, settings=settings)
    assert len(list_checkpoints(settings)) == 1


@pytest.mark.parametrize("name", ["", "   ", "a" * 81, "a\nb", "a\0b", "\u202eevil"])
def test_names_that_cannot_be_shown_are_refused(settings, fingerprint, name):
    with pytest.raises(CheckpointError, match="must have 1 to 80 printable characters"):
        rename_checkpoint(fingerprint, name, settings=settings)
    assert names_listed(settings) == ["mini"]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_damaged_manifest_hides_no_other_and_is_healed(folder, settings, fingerprint, other, garbage):
    (settings.home / "checkpoints" / fingerprint / "manifest.json").write_bytes(garbage)
    assert sorted(names_listed(settings)) == ["mini", "other"]
    with pytest.raises(CheckpointError) as error:
        load_manifest(fingerprint, settings=settings)
    assert str(error.value) == DAMAGED_ENTRY
    opened(upload_of(settings, folder, prefix="mini/"), settings)
    assert load_manifest(fingerprint, settings=settings).fingerprint == fingerprint
    assert opened(CheckpointRef("upload", other), settings)[0].name == "other"


@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_damaged_name_is_replaced_by_digits(settings, fingerprint, other, garbage):
    (settings.home / "checkpoints" / fingerprint / "entry.json").write_bytes(garbage)
    assert sorted(names_listed(settings)) == sorted([fingerprint[:12], "other"])
    assert load_manifest(fingerprint, settings=settings).name == "mini"
    rename_checkpoint(fingerprint, "again", settings=settings)
    assert sorted(names_listed(settings)) == ["again", "other"]


def test_lost_weights_are_healed_by_the_same_upload(folder, settings, fingerprint):
    weights = settings.home / "checkpoints" / fingerprint / "weights" / "model.safetensors"
    weights.unlink()
    with pytest.raises(CheckpointError, match=r"^model\.safetensors is missing from the store"):
        load_manifest(fingerprint, settings=settings)
    opened(upload_of(settings, folder, prefix="mini/"), settings)
    assert weights.read_bytes() == (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize("moment", ["Reading", "Hashing", "Storing"])
def test_killed_while_staging(folder, settings, moment):
    upload, place = new_upload(settings)
    for path in folder.iterdir():
        write_upload(place, path.name, path.read_bytes())
    process = stage_elsewhere(settings, upload, moment)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert list_checkpoints(settings) == ()
    left = list((settings.home / "temporary").glob("*"))
    assert bool(left) == (moment != "Reading")  # before that nothing is written
    discard_upload(upload, settings=settings)
    sweep(settings)
    assert not list((settings.home / "temporary").glob("*"))
    assert not list((settings.home / "incoming").iterdir())
    opened(upload_of(settings, folder), settings)
    assert len(list_checkpoints(settings)) == 1


def test_processes_stage_the_same_upload_at_once(folder, settings):
    uploads = [upload_of(settings, folder, prefix="mini/").value for _ in range(4)]
    processes = [stage_elsewhere(settings, upload) for upload in uploads]
    said = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert len(set(said)) == 1
    assert [stored.fingerprint for stored in list_checkpoints(settings)] == said[:1]
    assert load_manifest(said[0], settings=settings).name == "mini"


def test_a_folder_opened_again_leaves_its_entry_to_those_who_read_it(folder, settings):
    reference = CheckpointRef("path", str(folder))
    manifest, _ = opened(reference, settings, strangers=False)
    inode = manifest.folder.stat().st_ino
    assert opened(reference, settings, strangers=False)[0] == manifest
    assert manifest.folder.stat().st_ino == inode
    os.utime(folder / "model.safetensors", (1, 1))
    with pytest.raises(CheckpointError, match=r"^model\.safetensors has changed since"):
        load_manifest(manifest.fingerprint, settings=settings)
    opened(reference, settings, strangers=False)
    assert load_manifest(manifest.fingerprint, settings=settings) == manifest


def test_an_upload_in_progress_is_not_swept(settings):
    upload, place = new_upload(settings)
    write_upload(place, "config.json", b"{}")
    subprocess.run([sys.executable, "-c", SWEEP], check=True,
                   env=os.environ | {"INSPECTOR_HOME": str(settings.home)})  # fmt: skip
    assert list(read_names(incoming_folder(upload, settings=settings))) == ["config.json"]
    discard_upload(upload, settings=settings)
    assert not place.exists()


@pytest.mark.parametrize("make", ["upload", "workspace"])
def test_a_folder_is_not_swept_before_it_is_locked(settings, monkeypatch, make):
    """Another process may sweep at the worst moment: when the folder is there, its lock is not."""
    acquire = files.acquire

    def sweep_first(folder: Path) -> int | None:
        monkeypatch.setattr(files, "acquire", acquire)
        sweep(settings)
        return acquire(folder)

    monkeypatch.setattr(files, "acquire", sweep_first)
    if make == "upload":
        upload, place = new_upload(settings)
        write_upload(place, "config.json", b"{}")
        assert list(read_names(incoming_folder(upload, settings=settings))) == ["config.json"]
        discard_upload(upload, settings=settings)
    else:
        with files.workspace(settings.home) as place:
            sweep(settings)
            (place / "config.json").write_bytes(b"{}")
    assert not place.exists()


@pytest.mark.parametrize("name", ["../../evil.bin", "/etc/evil.bin", "a\0b.bin", "a\nb\x1b[31m.bin", "..", "é/ü.bin"])
def test_names_of_uploaded_files_are_no_paths(settings, tmp_path, name):
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    _, place = new_upload(settings)
    write_upload(place, name, iter([b"a", b"b"]))
    assert list(read_names(place)) == [name]
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert {path.parent for path in written} == {place}
    assert read_names(place)[name].read_bytes() == b"ab"


@pytest.mark.parametrize("name", ["", "a" * 300, "é" * 60])
def test_names_too_long_to_keep(settings, name):
    _, place = new_upload(settings)
    with pytest.raises(CheckpointError, match=r"The file name .* is too long"):
        write_upload(place, name, b"")


def test_a_name_that_the_disk_refuses_is_one_sentence(settings, fingerprint, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(registry, "write_atomically", full)
    with pytest.raises(CheckpointError, match="The disk of the store is full"):
        rename_checkpoint(fingerprint, "new", settings=settings)
    with pytest.raises(CheckpointError, match="The disk of the store is full"):
        pin_checkpoint(fingerprint, pinned=True, settings=settings)
    assert names_listed(settings) != ["new"]


@pytest.mark.parametrize("created", ["T:+-T:+-T:+-T", "2026-11-27", "9999-99-99T00:00:00+00:00", "2026-11-27T03:00:00"])
def test_a_time_that_is_none_is_replaced_by_the_files(settings, fingerprint, created):
    entry = settings.home / "checkpoints" / fingerprint / "entry.json"
    entry.write_text(json.dumps({"name": "mini", "nbytes": 1, "created": created}))
    (stored,) = list_checkpoints(settings)
    assert datetime.fromisoformat(stored.created).tzinfo is not None
    assert stored.created != created


def test_other_users_cannot_enter_a_store_of_an_earlier_version(settings, fingerprint):
    uploads = settings.home / "checkpoints"
    uploads.chmod(0o755)
    (settings.home / "opened").symlink_to(settings.home.parent, target_is_directory=True)
    before = stat.S_IMODE(settings.home.parent.stat().st_mode)
    registry.close_to_others(settings)
    assert stat.S_IMODE(uploads.stat().st_mode) == 0o700
    assert stat.S_IMODE(settings.home.parent.stat().st_mode) == before
    assert [stored.fingerprint for stored in list_checkpoints(settings)] == [fingerprint]
