"""Several servers, one list of uploads: in a folder that all mount, and behind a real S3 API."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from inspector.errors import CancelledError, CheckpointError, SettingsError
from inspector.serving.storing import registry, room
from inspector.serving.storing.marks import mark
from inspector.serving.storing.owners import Requester
from inspector.serving.storing.shared import publishing as shared
from inspector.serving.storing.shared.listing import listing
from inspector.serving.storing.shared.remote import Remote
from inspector.serving.storing.uploads import delete_upload, list_uploads, rename_upload, trouble
from inspector.settings import Settings, read_settings
from inspector.store.files import share, turn
from inspector.store.hashing import fingerprint_of
from inspector.store.keeping import quota
from inspector.store.keeping.shared import is_marked
from inspector.store.manifests.entries import load_manifest
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from tests.sentences import DISK_FULL
from tests.store.s3_server import BUCKET, SECRET, S3Place, environment, free_port, running_s3
from tests.store.store_builders import opened, small_checkpoint, upload_of

OLD = 1_000_000_000.0
SILENT = shared.Carrying(progress=lambda fraction, text: None, stopped=lambda: False)


class FolderPlace:
    """A shared folder, seen from outside."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.url, self._folder = f"file://{folder}", folder

    def files(self) -> dict[str, bytes]:
        paths = [path for path in self._folder.rglob("*") if path.is_file()]
        return {path.relative_to(self._folder).as_posix(): path.read_bytes() for path in paths}

    def put(self, path: str, data: bytes) -> None:
        (self._folder / path).write_bytes(data)

    def remove(self, path: str) -> None:
        (self._folder / path).unlink()


@pytest.fixture(scope="session")
def s3_address():
    with running_s3() as address:
        yield address


@pytest.fixture(params=["file", "s3"])
def place(request, tmp_path, monkeypatch) -> Any:
    if request.param == "file":
        return FolderPlace(tmp_path / "shared")
    address = request.getfixturevalue("s3_address")
    for name, value in environment(address).items():
        monkeypatch.setenv(name, value)
    return S3Place(address, tmp_path.name)


@pytest.fixture
def folder_place(tmp_path) -> FolderPlace:
    return FolderPlace(tmp_path / "shared")


def server(tmp_path: Path, name: str, place: Any, **limits: str) -> Settings:
    """A server with a home of its own."""
    home = {"INSPECTOR_HOME": str(tmp_path / name), "INSPECTOR_STORE": place.url}
    return read_settings(home | limits)


def upload(settings: Settings, folder: Path, name: str = "mine") -> str:
    """Stage a folder's files as a worker does, and publish them."""
    fingerprint = opened(upload_of(settings, folder, prefix=f"{name}/"), settings)[0].fingerprint
    shared.publish(fingerprint, settings=settings, carrying=SILENT)
    listing(settings).ask_again()
    return fingerprint


def fetch(settings: Settings, fingerprint: str) -> Any:
    """Fetch and stage, as the engine and its worker do."""
    arriving = shared.fetch(fingerprint, settings=settings, carrying=SILENT)
    try:
        manifest, _ = opened(CheckpointRef("incoming", arriving), settings)
    finally:
        registry.discard_upload(arriving, settings=settings)
    mark(settings.home / "checkpoints" / manifest.fingerprint, settings)
    return manifest


def refused(settings: Settings, fingerprint: str) -> str:
    """What is said instead of fetching; nothing is left behind."""
    with pytest.raises(CheckpointError) as error:
        shared.fetch(fingerprint, settings=settings, carrying=SILENT)
    incoming = settings.home / "incoming"
    assert not (list(incoming.iterdir()) if incoming.exists() else [])
    return str(error.value)


def names(settings: Settings) -> list[str]:
    return [stored.name for stored in list_uploads(settings, Requester())]


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = small_checkpoint(tmp_path / "mini")
    (folder / "modeling_mini.py").write_text("raise SystemExit")  # told, and not kept
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true, "auto_map": {"a": "b"}}')
    return folder


def test_another_server_gets_the_upload_byte_for_byte(tmp_path, place, folder):
    first, second = (server(tmp_path, name, place) for name in ("first", "second"))
    fingerprint = upload(first, folder)

    kept = [path for path in folder.iterdir() if path.suffix != ".py"]
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}
    expected = {
        f"blobs/{fingerprint}/{digests[path.name]}": path.read_bytes() for path in kept
    }  # fmt: skip
    held = place.files()
    listed = json.loads(held.pop(f"checkpoints/{fingerprint}.json"))
    assert held == expected
    assert fingerprint == fingerprint_of(digests)
    assert {file["name"]: file["sha256"] for file in listed["files"]} == digests

    assert names(second) == ["mine"]
    found, own = fetch(second, fingerprint), load_manifest(fingerprint, settings=first)
    paths = {"folder": None, "files": None}
    assert asdict(found) | paths == asdict(own) | paths
    assert "Python files" in found.warnings[0]
    for one, other in zip(found.files, own.files, strict=True):
        assert one.path.read_bytes() == other.path.read_bytes()
        assert replace(one, path=Path()) == replace(other, path=Path())
    assert (found.name, names(second)) == ("mine", ["mine"])


def test_the_first_digits_are_enough_unless_two_uploads_have_them(tmp_path, place, folder):
    first, second = (server(tmp_path, name, place) for name in ("first", "second"))
    fingerprint = upload(first, folder)
    assert fetch(second, fingerprint[:12]).fingerprint == fingerprint

    digits = f"{fingerprint[:12]}…"
    place.put(f"checkpoints/{fingerprint[:-1]}{'0' if fingerprint[-1] != '0' else '1'}.json", b"{}")
    assert refused(second, fingerprint[:12]) == (
        f"The checkpoint {digits} matches more than one name in the shared store: pick "
        "one from the list, or upload it again."
    )
    assert refused(second, "f" * 64) == (
        "The checkpoint ffffffffffff… is neither on this server nor in the shared store: pick one "
        "from the list, or upload it again."
    )


@pytest.mark.parametrize("change", [lambda data: data[:-1] + b"!", lambda data: data[:-1]])
def test_wrong_bytes_are_refused(tmp_path, place, folder, change):
    first, second = (server(tmp_path, name, place) for name in ("first", "second"))
    fingerprint = upload(first, folder)
    data = (folder / "model.safetensors").read_bytes()
    place.put(f"blobs/{fingerprint}/{hashlib.sha256(data).hexdigest()}", change(data))

    assert refused(second, fingerprint) == (
        "model.safetensors of mine in the shared store differs from the upload (its hash does not match): delete the "
        "upload, and upload it again."
    )


def test_a_missing_file_is_named(tmp_path, place, folder):
    first, second = (server(tmp_path, name, place) for name in ("first", "second"))
    fingerprint = upload(first, folder)
    data = (folder / "vocab.txt").read_bytes()
    place.remove(f"blobs/{fingerprint}/{hashlib.sha256(data).hexdigest()}")

    assert refused(second, fingerprint) == (
        "vocab.txt of mine is missing from the shared store: delete the upload, and upload it again."
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda listed: b"\x00not json",
        lambda listed: json.dumps([listed]).encode(),
        lambda listed: json.dumps({**listed, "files": listed["files"][1:]}).encode(),
        lambda listed: json.dumps({**listed, "files": listed["files"] * 2}).encode(),
        lambda listed: json.dumps({**listed, "files": [dict(listed["files"][0], name="../../x")]})
        .encode(),
        lambda listed: json.dumps({**listed, "name": 3}).encode(),
    ],
)  # fmt: skip
def test_a_list_that_was_tampered_with_counts_as_none(tmp_path, folder_place, folder, change):
    first, second = (server(tmp_path, name, folder_place) for name in ("first", "second"))
    fingerprint = upload(first, folder)
    path = f"checkpoints/{fingerprint}.json"
    folder_place.put(path, change(json.loads(folder_place.files()[path])))

    assert names(second) == []
    assert "is neither on this server nor in the shared store" in refused(second, fingerprint)


def test_what_comes_out_of_staging_must_be_what_was_asked_for(tmp_path, folder_place, folder):
    """The list is right and its files are, but a checkpoint does not use one of them."""
    first, second = (server(tmp_path, name, folder_place) for name in ("first", "second"))
    fingerprint = upload(first, folder)
    listed = json.loads(folder_place.files()[f"checkpoints/{fingerprint}.json"])
    extra = b"no index of these weights"
    digest = hashlib.sha256(extra).hexdigest()
    listed["files"].append({"name": "pytorch_model.bin.index.json", "nbytes": len(extra), "sha256": digest})
    forged = fingerprint_of({file["name"]: file["sha256"] for file in listed["files"]})
    for path, data in folder_place.files().items():
        if path.startswith("blobs/"):
            copied = Path(folder_place.url.removeprefix("file://")) / path.replace(fingerprint, forged)
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(data)
    folder_place.put(f"blobs/{forged}/{digest}", extra)
    folder_place.put(f"checkpoints/{forged}.json", json.dumps(listed | {"fingerprint": forged}).encode())
    with pytest.raises(CheckpointError, match="are not the upload that was requested"):
        fetch(second, forged)
    assert list((second.home / "checkpoints").glob("*")) == []


def test_a_deletion_counts_everywhere(tmp_path, place, folder):
    first, second, third = (server(tmp_path, name, place) for name in ("first", "second", "third"))
    fingerprint = upload(first, folder)
    fetch(second, fingerprint)
    delete_upload(fingerprint, settings=third, asker=Requester())  # which holds no copy

    assert set(place.files()) == {f"deleted/{fingerprint}"}
    for each in (first, second, third):
        listing(each).ask_again()
        assert names(each) == []
        assert not (each.home / "checkpoints" / fingerprint).exists()
    assert "is neither on this server" in refused(second, fingerprint)

    assert upload(second, folder, "again") == fingerprint
    for each in (first, third):
        listing(each).ask_again()
        assert names(each) == ["again"]
    assert not [path for path in place.files() if path.startswith("deleted/")]


def test_a_store_that_lost_its_files_deletes_nothing(tmp_path, folder_place, folder):
    first = server(tmp_path, "first", folder_place)
    fingerprint = upload(first, folder)
    for path in folder_place.files():
        folder_place.remove(path)
    listing(first).ask_again()
    assert names(first) == ["mine"]
    shared.publish(fingerprint, settings=first, carrying=SILENT)
    assert f"checkpoints/{fingerprint}.json" in folder_place.files()


def test_a_deletion_leaves_uploads_that_were_never_shared(tmp_path, folder_place, folder):
    first, second = (server(tmp_path, name, folder_place) for name in ("first", "second"))
    fingerprint = upload(first, folder)
    own, _ = opened(upload_of(second, folder), second)
    delete_upload(fingerprint, settings=first, asker=Requester())
    listing(second).ask_again()
    assert own.fingerprint == fingerprint
    assert [stored.fingerprint for stored in list_uploads(second, Requester())] == [fingerprint]


def test_a_new_name_counts_everywhere(tmp_path, place, folder):
    first, second = (server(tmp_path, name, place) for name in ("first", "second"))
    fingerprint = upload(first, folder)
    rename_upload(fingerprint, " theirs ", settings=second, asker=Requester())
    listing(first).ask_again()
    assert (names(first), names(second)) == (["theirs"], ["theirs"])
    rename_upload(fingerprint, "ours", settings=first, asker=Requester())
    assert load_manifest(fingerprint, settings=first).name == "ours"
    with pytest.raises(CheckpointError, match="must have 1 to 80 printable characters"):
        rename_upload(fingerprint, "", settings=first, asker=Requester())


def test_what_was_interrupted_is_not_listed_and_can_be_done_again(tmp_path, place, folder):
    first, second = (server(tmp_path, name, place) for name in ("first", "second"))
    manifest, _ = opened(upload_of(first, folder, prefix="mine/"), first)
    told: list[str] = []
    stopping = shared.Carrying(progress=lambda fraction, text: told.append(text), stopped=lambda: len(told) > 1)
    with pytest.raises(CancelledError):
        shared.publish(manifest.fingerprint, settings=first, carrying=stopping)
    assert names(second) == []
    assert not [path for path in place.files() if path.endswith((".part", ".json"))]
    assert not is_marked(manifest.folder.parent, first)
    assert told[0].startswith("Copying mine to the shared store: 0 of ")

    shared.publish(manifest.fingerprint, settings=first, carrying=SILENT)
    told.clear()
    with pytest.raises(CancelledError):
        shared.fetch(manifest.fingerprint, settings=second, carrying=stopping)
    assert not list((second.home / "incoming").iterdir())
    assert fetch(second, manifest.fingerprint).fingerprint == manifest.fingerprint


def test_uploads_of_an_earlier_version_are_not_shared_half(tmp_path, folder_place, folder):
    first = server(tmp_path, "first", folder_place)
    manifest, _ = opened(upload_of(first, folder), first)
    shutil.rmtree(manifest.folder.parent / "originals")
    with pytest.raises(CheckpointError) as error:
        shared.publish(manifest.fingerprint, settings=first, carrying=SILENT)
    assert str(error.value) == (
        "This server's copy of config.json differs from the upload, so it cannot be copied to the shared store: "
        "delete the upload, and upload it again."
    )
    assert not [path for path in folder_place.files() if path.startswith("checkpoints/")]


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_a_store_out_of_reach_is_one_sentence(tmp_path, monkeypatch, folder, kind):
    for name, value in environment(f"http://127.0.0.1:{free_port()}").items():
        monkeypatch.setenv(name, value)
    url = f"file://{tmp_path / 'unmounted'}" if kind == "file" else f"s3://{BUCKET}-{tmp_path.name}"
    first = read_settings({"INSPECTOR_HOME": str(tmp_path / "first"), "INSPECTOR_STORE": url})
    manifest, _ = opened(upload_of(first, folder, prefix="mine/"), first)
    sentence = {
        "file": "The shared store's folder does not exist: create it, or mount it again.",
        "s3": "The shared store cannot be reached: try again later.",
    }[kind]
    for work in (
        lambda: shared.publish(manifest.fingerprint, settings=first, carrying=SILENT),
        lambda: shared.fetch("f" * 64, settings=first, carrying=SILENT),
        lambda: delete_upload(manifest.fingerprint, settings=first, asker=Requester()),
    ):
        with pytest.raises(CheckpointError) as error:
            work()
        assert str(error.value) == sentence
        assert error.value.__cause__ is None  # whose text may hold an address
    assert names(first) == ["mine"]  # its own are listed all the same
    assert trouble(first) == sentence
    assert not (tmp_path / "unmounted").exists()


def test_a_bucket_that_is_not_there_is_one_sentence(tmp_path, monkeypatch, s3_address, folder):
    for name, value in environment(s3_address).items():
        monkeypatch.setenv(name, value)
    first = read_settings({"INSPECTOR_HOME": str(tmp_path / "first"), "INSPECTOR_STORE": f"s3://no-{tmp_path.name}"})
    manifest, _ = opened(upload_of(first, folder, prefix="mine/"), first)
    with pytest.raises(CheckpointError) as error:
        shared.publish(manifest.fingerprint, settings=first, carrying=SILENT)
    assert str(error.value) == "The location in INSPECTOR_STORE does not exist: create it first."


@pytest.mark.parametrize(
    "failure",
    [
        (OSError(errno.ENOSPC, "No space left"),
         "The shared store is full: delete uploads, or give it more space."),
        (PermissionError(errno.EACCES, f"denied {SECRET}"),
         "The shared store denies this server access: check its keys and their permissions."),
        (RuntimeError(f"https://me:{SECRET}@store"),
         "The shared store cannot be reached: try again later."),
    ],
)  # fmt: skip
def test_the_stores_errors_become_sentences(tmp_path, folder_place, folder, monkeypatch, failure):
    raised, sentence = failure
    first = server(tmp_path, "first", folder_place)
    manifest, _ = opened(upload_of(first, folder), first)

    def fail(*arguments: Any, **options: Any) -> None:
        raise raised

    monkeypatch.setattr(LocalFileSystem, "open", fail)
    with pytest.raises(CheckpointError) as error:
        shared.publish(manifest.fingerprint, settings=first, carrying=SILENT)
    assert str(error.value) == sentence
    assert names(server(tmp_path, "second", folder_place)) == []


def test_a_full_disk_here_is_one_sentence(tmp_path, folder_place, folder, monkeypatch):
    first, second = (server(tmp_path, name, folder_place) for name in ("first", "second"))
    fingerprint = upload(first, folder)

    def full(place: Path, name: str, pieces: Any) -> None:
        next(iter(pieces))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(registry, "write_upload", full)
    assert refused(second, fingerprint) == (DISK_FULL)


def test_what_this_server_does_not_take_is_not_fetched(tmp_path, folder_place, folder):
    fingerprint = upload(server(tmp_path, "first", folder_place), folder)
    nbytes = sum(path.stat().st_size for path in folder.iterdir() if path.suffix != ".py")
    second = replace(server(tmp_path, "second", folder_place), upload_nbytes=nbytes - 1)
    assert refused(second, fingerprint) == (
        f"mine has {nbytes:,} bytes in the shared store, but this server accepts at most "
        f"{nbytes - 1:,}: set INSPECTOR_UPLOAD_MB higher."
    )
    third = replace(server(tmp_path, "third", folder_place), store_nbytes=nbytes - 1)
    assert "the store is limited to" in refused(third, fingerprint)


def rest(entry: Path) -> None:
    """Nobody has used an entry for a while."""
    for path in (entry / ".lock", entry / "manifest.json"):
        if path.exists():
            os.utime(path, (OLD, OLD))


def test_copies_make_room_first_and_none_that_is_in_use(tmp_path, folder_place):
    first, second = (server(tmp_path, name, folder_place) for name in ("first", "second"))
    models = {name: small_checkpoint(tmp_path / name, seed=seed) for seed, name in
              enumerate(("own", "copied", "pinned", "used"))}  # fmt: skip
    prints = {name: upload(first, models[name], name) for name in ("copied", "pinned", "used")}
    own, _ = opened(upload_of(second, models["own"], prefix="own/"), second)
    for fingerprint in prints.values():
        fetch(second, fingerprint)
    registry.pin_checkpoint(prints["pinned"], pinned=True, settings=second)
    result = second.home / "maps" / own.fingerprint / "neighbors.npz"
    result.parent.mkdir(parents=True)
    result.write_bytes(b"x")
    for fingerprint in (*prints.values(), own.fingerprint):
        rest(second.home / "checkpoints" / fingerprint)
    lock = share(second.home / "checkpoints" / prints["used"])
    assert lock is not None
    rest(second.home / "checkpoints" / prints["used"])

    full = replace(second, store_nbytes=quota.account(second).used_nbytes)
    with pytest.raises(CheckpointError, match="The store is full"):
        room.make_room(2, replace(full, store=None))  # on its own, a copy is somebody's upload
    result.write_bytes(b"x")
    room.make_room(1, full)
    here = {stored.name for stored in list_checkpoints(second)}
    assert here == {"own", "pinned", "used"}
    assert result.exists()
    assert set(names(second)) == {"own", "copied", "pinned", "used"}  # it can be fetched again
    tight = replace(full, store_nbytes=quota.used_nbytes(second))
    with pytest.raises(CheckpointError, match=r"The store is full: .*: wait for that, or set") as refused:
        room.make_room(2, tight)  # a deletion would take them from every server
    assert "delete" not in str(refused.value)
    with pytest.raises(CheckpointError, match=r"The store is full: .*: delete own \("):
        room.make_room(full.store_nbytes, full)
    assert {stored.name for stored in list_checkpoints(second)} == here
    kinds = {kind.name: kind.can_go for kind in quota.account(second).kinds}
    assert kinds["uploads"] == "first if the shared store has them, unless pinned or in use"


def test_the_shared_store_takes_no_more_than_it_may(tmp_path, folder_place):
    sizes = {}
    for number, name in enumerate(("one", "two")):
        sizes[name] = sum(path.stat().st_size for path in small_checkpoint(tmp_path / name, seed=number).iterdir())
    roomy = server(tmp_path, "first", folder_place)
    settings = replace(roomy, shared_nbytes=sum(sizes.values()) - 1)
    upload(settings, tmp_path / "one", "one")
    with pytest.raises(CheckpointError, match=r"The shared store holds .* MB that it may, .* INSPECTOR_SHARED_MB"):
        upload(settings, tmp_path / "two", "two")
    assert [path.suffix for path in (tmp_path / "shared" / "checkpoints").iterdir()] == [".json"]
    assert len(list_checkpoints(settings)) == 2
    upload(replace(roomy, shared_nbytes=sum(sizes.values())), tmp_path / "two", "two")
    assert server(tmp_path, "other", folder_place, INSPECTOR_SHARED_MB="5").shared_nbytes == 5_000_000
    assert roomy.shared_nbytes is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda store: store.rename(store.with_name("aside")), "make room once it is reached again: wait for that"),
        (lambda store: next((store / "checkpoints").iterdir()).unlink(), "make room once nobody uses or pins them"),
    ],
)
def test_a_copy_that_the_shared_store_does_not_have_now_makes_no_room(tmp_path, folder_place, folder, change, said):
    first, second = (server(tmp_path, name, folder_place) for name in ("first", "second"))
    fingerprint = upload(first, folder)
    fetch(second, fingerprint)
    rest(second.home / "checkpoints" / fingerprint)
    change(tmp_path / "shared")
    full = replace(second, store_nbytes=quota.account(second).used_nbytes)
    with pytest.raises(CheckpointError, match=said):
        room.make_room(1, full)
    assert [stored.fingerprint for stored in list_checkpoints(second)] == [fingerprint]


def full_of_a_copy(tmp_path, folder_place, folder) -> tuple[Settings, str]:
    """A server whose store is as full as it may be: of an upload that the shared store has as well."""
    first, second = (server(tmp_path, name, folder_place) for name in ("first", "second"))
    fingerprint = upload(first, folder)
    fetch(second, fingerprint)
    rest(second.home / "checkpoints" / fingerprint)
    return replace(second, store_nbytes=quota.account(second).used_nbytes), fingerprint


def test_a_silent_shared_store_keeps_nobody_else_waiting(tmp_path, folder_place, folder, monkeypatch):
    full, _ = full_of_a_copy(tmp_path, folder_place, folder)
    stamps, waited = Remote.stamps, []

    def silent(remote: Remote, path: str) -> dict[str, tuple[Any, ...]]:
        other = threading.Thread(target=have_a_turn, args=(full.home,), daemon=True)
        other.start()
        other.join(5)
        waited.append(other.is_alive())
        return stamps(remote, path)

    monkeypatch.setattr(Remote, "stamps", silent)
    room.make_room(1, full)
    assert list_checkpoints(full) == ()
    with pytest.raises(CheckpointError, match="limited to"):
        room.reserve_upload(full.store_nbytes + 1, full)
    assert waited
    assert not any(waited)


def have_a_turn(home: Path) -> None:
    with turn(home):
        pass


def test_a_copy_is_counted_once_where_uploads_may_go(tmp_path, folder_place, folder):
    full, fingerprint = full_of_a_copy(tmp_path, folder_place, folder)
    full = replace(full, store_evict="uploads")
    goes = quota.nbytes_of(full.home / "checkpoints" / fingerprint)
    other = registry.new_upload(full)[1] / "other"
    other.write_bytes(bytes(goes))  # of what arrives, nothing goes
    full = replace(full, store_nbytes=quota.used_nbytes(full))
    room.check_room(goes, full)
    with pytest.raises(CheckpointError, match="The store is full"):
        room.check_room(goes + 1, full)
    with pytest.raises(CheckpointError, match="The store is full"):
        room.make_room(goes + 1, full)


@pytest.mark.parametrize(
    ("text", "url"),
    [("", None), ("/mnt/all/", "file:///mnt/all/"), ("file:///mnt/all/", "file:///mnt/all"),
     ("S3://bucket/folder/", "s3://bucket/folder")],
)  # fmt: skip
def test_the_setting(text, url):
    found = read_settings({"INSPECTOR_STORE": text}).store
    assert found == (url.rstrip("/") if url else None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("s3://me:hush@bucket", "contains more than a location"),
        ("s3://bucket?key=hush", "contains more than a location"),
        ("nowhere://hush", "starts with an unknown kind of store"),
    ],
)
def test_a_setting_that_cannot_be_used_is_not_repeated(text, sentence):
    with pytest.raises(SettingsError, match=sentence) as error:
        read_settings({"INSPECTOR_STORE": text})
    assert "hush" not in str(error.value)
