"""What a worker left in the store is not believed: it may have been taken over by what it read."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import CheckpointError
from inspector.serving.storing.registry import delete_checkpoint, pin_checkpoint, rename_checkpoint, sweep
from inspector.serving.storing.room import make_room
from inspector.store.keeping.quota import account, trim
from inspector.store.manifests.entries import load_manifest
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from tests.sentences import DAMAGED_ENTRY
from tests.store.store_builders import opened, small_checkpoint, upload_of

DIGEST = "0" * 64


@pytest.fixture
def folder(tmp_path) -> Path:
    return small_checkpoint(tmp_path / "mini")


@pytest.fixture
def fingerprint(folder, settings) -> str:
    return opened(upload_of(settings, folder, prefix="mini/"), settings)[0].fingerprint


@pytest.fixture
def outside(tmp_path) -> Path:
    """Somebody's files, beside the store."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "diary.arrays").write_text("mine")
    os.utime(place / "diary.arrays", (1, 1))
    return place


def entry_of(settings, fingerprint: str) -> Path:
    return settings.home / "checkpoints" / fingerprint


def tamper(entry: Path, change) -> None:
    """Change a manifest as a worker could that writes what it likes."""
    path = entry / "manifest.json"
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))


def set_in(*keys: Any):
    *place, last, value = keys

    def change(stored: Any) -> None:
        for key in place:
            stored = stored[key]
        stored[last] = value

    return change


def of_tensors(change):
    """Change the tensors of a manifest, which are a text in it, with each column written as a list."""

    def changed(stored: Any) -> None:
        tensors = json.loads(stored["tensors"])
        tensors["names"] = tensors["names"].split(" ")
        for column in ("storages", "storage_nbytes"):
            tensors[column] = tensors[column] or [None] * len(tensors["names"])
        change(tensors)
        stored["tensors"] = json.dumps(tensors)

    return changed


def survives(outside: Path) -> bool:
    return (outside / "diary.arrays").read_text() == "mine" and len(list(outside.iterdir())) == 1


@pytest.mark.parametrize("field", ["sha256", "quick"])
@pytest.mark.parametrize("style", ["absolute", "climbing"])
def test_a_digest_that_is_a_path_deletes_nothing_outside(settings, fingerprint, outside, field, style):
    path = str(outside) if style == "absolute" else os.path.relpath(outside, settings.home / "maps")
    (settings.home / "maps").mkdir(exist_ok=True)
    tamper(entry_of(settings, fingerprint), set_in("files", 0, field, path))
    delete_checkpoint(fingerprint, settings=settings)
    assert survives(outside)
    assert list_checkpoints(settings) == ()


@pytest.mark.parametrize("kind", ["maps", "temporary", "incoming", "workers", "checkpoints", "opened"])
@pytest.mark.parametrize("name", ["run1", ".git", ".venv-old", "notes.arrays", "0" * 32])
def test_what_a_person_has_in_the_folder_that_is_named_as_the_store_stays(settings, fingerprint, kind, name):
    """INSPECTOR_HOME may be a folder of somebody's own, with folders that are called as ours are."""
    mine = settings.home / kind / name
    mine.mkdir(parents=True)
    (mine / "diary.arrays").write_text("mine")
    for path in (mine / "diary.arrays", mine):
        os.utime(path, (1, 1))
    sweep(settings)
    trim(settings)
    with pytest.raises(CheckpointError):
        make_room(settings.store_nbytes + 1, settings)
    delete_checkpoint(fingerprint, settings=settings)
    assert sorted(path.name for path in mine.rglob("*")) == ["diary.arrays"]


@pytest.mark.parametrize("kind", ["maps", "temporary", "incoming", "checkpoints", "opened"])
def test_a_link_in_place_of_a_folder_of_the_store_leads_nowhere(settings, fingerprint, outside, kind):
    """Not on a deletion, nor where room is made, nor where what was left over is swept."""
    (outside / "inside").mkdir()
    (outside / "inside" / "manifest.json").write_text("{}")
    (outside / "inside" / "old.arrays").write_text("mine")
    for path in (outside / "inside" / "old.arrays", outside / "inside"):
        os.utime(path, (1, 1))
    place = settings.home / kind
    if place.exists():
        place.rename(settings.home / "moved")
    place.symlink_to(outside)
    before = sorted(outside.rglob("*"))
    sweep(settings)
    trim(settings)
    account(settings)
    for digits in (fingerprint, DIGEST):
        with suppress(CheckpointError):  # of one that is there, it removes what is no link
            delete_checkpoint(digits, settings=settings)
    with pytest.raises(CheckpointError):
        make_room(settings.store_nbytes + 1, settings)
    assert sorted(outside.rglob("*")) == before


def test_a_link_in_place_of_an_entry_is_no_entry(settings, fingerprint, outside):
    (outside / "manifest.json").write_text("{}")
    link = entry_of(settings, DIGEST)
    link.symlink_to(outside)
    assert [stored.fingerprint for stored in list_checkpoints(settings)] == [fingerprint]
    for change in (
        lambda: rename_checkpoint(DIGEST, "mine", settings=settings),
        lambda: pin_checkpoint(DIGEST, pinned=True, settings=settings),
        lambda: delete_checkpoint(DIGEST, settings=settings),
        lambda: opened(CheckpointRef("upload", DIGEST), settings),
        lambda: load_manifest(DIGEST, settings=settings),
    ):
        with pytest.raises(CheckpointError, match=r"no longer in the store"):
            change()
    assert not (outside / "entry.json").exists()
    assert not (outside / ".lock").exists()


@pytest.mark.parametrize("place", ["weights", "folder"])
def test_a_file_of_an_entry_that_is_a_link_is_not_read(settings, fingerprint, outside, place):
    entry = entry_of(settings, fingerprint)
    file = next(iter((entry / place).iterdir()))
    file.unlink()
    file.symlink_to(outside / "diary.arrays")
    with pytest.raises(CheckpointError, match=r"is missing from the store|damaged"):
        load_manifest(fingerprint, settings=settings)


@pytest.mark.parametrize("name", ["manifest.json", "entry.json"])
def test_a_document_that_is_a_link_is_not_read(settings, fingerprint, outside, name):
    path = entry_of(settings, fingerprint) / name
    path.rename(outside / name)
    path.symlink_to(outside / name)
    if name == "entry.json":
        assert list_checkpoints(settings)[0].name == fingerprint[:12]
    else:
        with pytest.raises(CheckpointError):
            load_manifest(fingerprint, settings=settings)


def test_another_checkpoints_fingerprint_is_refused(folder, settings, fingerprint, tmp_path):
    """Else a worker could let everybody read its own files under another one's name."""
    other = opened(upload_of(settings, small_checkpoint(tmp_path / "other", seed=1)), settings)[0].fingerprint
    forged = (entry_of(settings, other) / "manifest.json").read_bytes()
    (entry_of(settings, fingerprint) / "manifest.json").write_bytes(forged)
    with pytest.raises(CheckpointError, match="damaged"):
        load_manifest(fingerprint, settings=settings)
    tamper(entry_of(settings, fingerprint), set_in("fingerprint", fingerprint))
    with pytest.raises(CheckpointError, match="damaged"):  # the digests do not make it
        load_manifest(fingerprint, settings=settings)


LIES = {
    "an unknown field": set_in("run", "me"),
    "an unknown field of a file": set_in("files", 0, "run", "me"),
    "a list for an object": set_in("aliases", []),
    "another format": set_in("format", True),
    "a name that is a path": set_in("files", 0, "name", "../config.json"),
    "a name of no checkpoint's file": set_in("files", 0, "name", "authorized_keys"),
    "another format of a file": set_in("files", 0, "format", "pickle"),
    "a path elsewhere": set_in("files", 0, "path", "/etc/passwd"),
    "a path that climbs": set_in("files", 0, "path", "../../../../etc/passwd"),
    "a path of another file": set_in("files", 0, "path", "weights/model.safetensors"),
    "a size below zero": set_in("files", 0, "nbytes", -1),
    "a size that is no number": set_in("files", 0, "nbytes", True),
    "a size beyond all": set_in("files", 0, "nbytes", 10**400),
    "a fraction of a byte": set_in("files", 0, "nbytes", 1.5),
    "a short digest": set_in("files", 0, "sha256", "0" * 63),
    "capital digits": set_in("files", 0, "sha256", "A" * 64),
    "a source of another kind": set_in("source", "elsewhere"),
    "a name that is no text": set_in("name", ["mini"]),
    "a tensor in no file": of_tensors(set_in("kinds", 0, "file", "other.safetensors")),
    "a dtype that torch has not": of_tensors(set_in("kinds", 0, "dtype", "__class__")),
    "a shape below zero": of_tensors(set_in("kinds", 0, "shape", [-1, 4])),
    "a stride below zero": of_tensors(set_in("kinds", 0, "strides", [-4, 1])),
    "more strides than axes": of_tensors(set_in("kinds", 0, "strides", [1, 1, 1])),
    "a place beyond the file": of_tensors(set_in("begins", 0, 2**40)),
    "a place before the file": of_tensors(set_in("begins", 0, -8)),
    "strides beyond the file": of_tensors(set_in("kinds", 0, "strides", [2**40, 1])),
    "more bytes than the shape has": of_tensors(set_in("kinds", 0, "nbytes", 2**40)),
    "an unknown field of a kind": of_tensors(set_in("kinds", 0, "run", "me")),
    "an unknown column": of_tensors(set_in("run", [])),
    "a kind of tensor that is not there": of_tensors(lambda tensors: set_in("kind", 0, len(tensors["kinds"]))(tensors)),
    "a kind below zero": of_tensors(set_in("kind", 0, -1)),
    "a truth for a kind": of_tensors(set_in("kind", 0, True)),
    "a storage that is no text": of_tensors(set_in("storages", 0, 1)),
    "a storage of no size": of_tensors(set_in("storage_nbytes", 0, "1")),
    "a name of half a character": of_tensors(set_in("names", 0, "\ud800")),
    "a text of names with half a character": of_tensors(set_in("names", "\ud800 b c")),
    "too few names in a text": of_tensors(set_in("names", "a b")),
    "too few values": of_tensors(lambda tensors: tensors["begins"].pop()),
    "a column that is none": of_tensors(set_in("names", "abc")),
    "no tensors but a number": set_in("tensors", 1),
    "no tensors but a text": set_in("tensors", "tensors"),
    "tensors that are no object": set_in("tensors", "[]"),
    "tensors with a key twice": lambda stored: set_in("tensors", stored["tensors"][:-1] + ', "names": []}')(stored),
    "millions of empty values, written as escapes": set_in("tensors", '{"kinds": [' + "[]," * 3_000_000 + "[]]}"),
    "an earlier list with too few values": set_in("tensors", [["weight", "float32"]]),
    "an earlier list of objects": set_in("tensors", [[{}] * 9]),
    "an alias of no tensor": set_in("aliases", "head", 3),
    "a configuration that replaces code": set_in("config", "to_dict", 1),
    "no configuration but a list": set_in("config", []),
    "facts that are none": set_in("quantization", "bits", -1),
    "unknown facts": set_in("quantization", "run", 1),
    "warnings that are no text": set_in("warnings", [1]),
    "the same file twice": lambda stored: stored["files"].append(stored["files"][0]),
    "the same tensor twice": of_tensors(
        lambda tensors: [tensors[column].append(tensors[column][0]) for column in tensors if column != "kinds"]
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_in_a_manifest_is_refused(settings, fingerprint, lie):
    tamper(entry_of(settings, fingerprint), LIES[lie])
    with pytest.raises(CheckpointError) as error:
        load_manifest(fingerprint, settings=settings)
    assert str(error.value) == DAMAGED_ENTRY


def test_columns_written_as_lists_say_the_same(settings, fingerprint):
    """So that it is the lie above that is refused."""
    plain = load_manifest(fingerprint, settings=settings)
    tamper(entry_of(settings, fingerprint), of_tensors(lambda tensors: None))
    assert load_manifest(fingerprint, settings=settings) == plain


def test_a_configuration_is_cut_down_to_plain_settings_again(settings, fingerprint):
    plain = load_manifest(fingerprint, settings=settings)
    tamper(entry_of(settings, fingerprint), set_in("config", "auto_map", {"AutoModel": "evil--code.Model"}))
    assert load_manifest(fingerprint, settings=settings) == plain


def test_a_manifest_of_any_length_is_not_read(settings, fingerprint, monkeypatch):
    path = entry_of(settings, fingerprint) / "manifest.json"
    with path.open("r+b") as file:
        file.truncate(10**12)  # a hole: nothing on the disk, a server's memory if it were read
    with pytest.raises(CheckpointError, match="damaged"):
        load_manifest(fingerprint, settings=settings)
    delete_checkpoint(fingerprint, settings=settings)
    assert list_checkpoints(settings) == ()


def test_a_manifest_of_millions_of_empty_values_is_not_parsed(settings, fingerprint):
    path = entry_of(settings, fingerprint) / "manifest.json"
    path.write_bytes(b'{"format": 1, "files": [' + b"[]," * 5_000_000 + b"[]]}")
    with pytest.raises(CheckpointError, match="damaged"):
        load_manifest(fingerprint, settings=settings)


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"name": "a\u202eb\n" + "x" * 500, "nbytes": 1, "created": "2026-01-01"}, "ab" + "x" * 78),
        ({"name": "mini", "nbytes": -5, "created": 3}, "mini"),
        ({"name": "mini", "nbytes": 10**300, "created": "<b>" * 1000}, "mini"),
    ],
)
def test_the_list_shows_plain_names_sizes_and_times(settings, fingerprint, entry, shown):
    (entry_of(settings, fingerprint) / "entry.json").write_text(json.dumps(entry))
    (stored,) = list_checkpoints(settings)
    assert stored.name == shown
    assert 0 <= stored.nbytes < 2**63
    assert len(stored.created) <= 40


def test_names_that_are_no_fingerprints_are_no_entries(settings, fingerprint):
    copy = settings.home / "checkpoints" / "../checkpoints" / "a name"
    copy.mkdir()
    (copy / "manifest.json").write_text("{}")
    assert [stored.fingerprint for stored in list_checkpoints(settings)] == [fingerprint]


def test_what_was_opened_where_it_lies_is_read_there_and_nowhere_else(folder, settings):
    """An absolute path is believed of a file that looks as it did then, and of no upload's."""
    manifest, _ = opened(CheckpointRef("path", str(folder)), settings, strangers=False)
    entry = settings.home / "opened" / manifest.fingerprint
    number = next(n for n, file in enumerate(manifest.files) if file.name == "model.safetensors")
    secret = folder.parent / "secret.safetensors"
    secret.write_bytes((folder / "model.safetensors").read_bytes())
    tamper(entry, set_in("files", number, "path", str(secret)))
    with pytest.raises(CheckpointError, match="has changed since it was opened"):
        load_manifest(manifest.fingerprint, settings=settings)
    tamper(entry, set_in("files", number, "stamp", None))
    with pytest.raises(CheckpointError, match="damaged"):
        load_manifest(manifest.fingerprint, settings=settings)
