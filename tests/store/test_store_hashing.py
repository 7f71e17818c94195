"""What a checkpoint is known by: its content where it is small or uploaded, samples where not."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from inspector.catalog import answer
from inspector.errors import CheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store import hashing
from inspector.store.hashing import PAGE, PAGES, BackgroundHasher, HashCache, identify, quick_digest
from inspector.store.manifests.entries import load_manifest
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.store.store_builders import hub_cache, opened, small_checkpoint, upload_of
from tools.bench._sparse import SHAPES, write, write_shard

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path) -> Path:
    return small_checkpoint(tmp_path / "mini")


@pytest.fixture
def large(folder) -> Path:
    """A checkpoint that is too large to be known by every byte; nearly all of it is a hole."""
    (folder / "config.json").unlink()  # of another model
    write_shard(folder / WEIGHTS, [("x.weight", "BF16", (60, 1_000_000))])
    return folder


def by_path(folder, settings):
    return opened(CheckpointRef("path", str(folder)), settings, strangers=False)[0]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def change(path: Path, place: int, *, unseen: bool) -> None:
    """Turn the bits of one byte; `unseen`: the file's times say nothing of it."""
    stat = path.stat()
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 255]))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + (0 if unseen else 10**9)))


def bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


def test_opening_a_large_checkpoint_reads_headers_and_samples(tmp_path, settings):
    write(tmp_path / "8b", SHAPES["8B"])
    before = bytes_read()
    manifest = by_path(tmp_path / "8b", settings)
    assert bytes_read() - before < 5_000_000  # of 16 GB
    assert not manifest.by_content
    known = {file.name: file.sha256 for file in manifest.files}
    assert known.pop("config.json") == sha256(tmp_path / "8b" / "config.json")
    index = "model.safetensors.index.json"
    assert known.pop(index) == sha256(tmp_path / "8b" / index)
    assert len(known) == 4
    assert set(known.values()) == {None}


def test_a_small_checkpoint_is_known_by_its_content_wherever_it_lies(folder, settings, tmp_path):
    here = by_path(folder, settings)
    there = by_path(shutil.copytree(folder, tmp_path / "copy"), settings)
    uploaded, _ = opened(upload_of(settings, folder), settings)
    assert here.by_content
    assert here.fingerprint == there.fingerprint == uploaded.fingerprint
    lines = "".join(f"{name}\n{sha256(folder / name)}\n" for name in sorted(file.name for file in here.files))
    assert here.fingerprint == hashlib.sha256(lines.encode()).hexdigest()


def test_copies_of_a_large_checkpoint_are_not_taken_for_one(large, settings, tmp_path):
    here = by_path(large, settings)
    there = by_path(shutil.copytree(large, tmp_path / "copy"), settings)
    uploaded, _ = opened(upload_of(settings, large), settings)
    assert len({here.fingerprint, there.fingerprint, uploaded.fingerprint}) == 3
    assert by_path(large, settings).fingerprint == here.fingerprint
    assert uploaded.by_content
    assert not here.by_content


def test_a_change_is_noticed_by_the_time_whatever_byte_it_is(large, settings):
    path = large / WEIGHTS
    before = by_path(large, settings)
    change(path, path.stat().st_size - 70_000, unseen=False)
    with pytest.raises(CheckpointError, match=r"^model\.safetensors has changed since it was"):
        load_manifest(before.fingerprint, settings=settings)
    after = by_path(large, settings)
    assert after.fingerprint != before.fingerprint
    assert load_manifest(after.fingerprint, settings=settings) == after


def test_a_file_put_in_place_of_another_of_its_size_and_time_is_noticed(folder, settings):
    before = by_path(folder, settings)
    path = folder / WEIGHTS
    shutil.copy2(path, folder / "new")
    change(folder / "new", path.stat().st_size - 5, unseen=True)
    (folder / "new").replace(path)
    with pytest.raises(CheckpointError, match=r"^model\.safetensors has changed since it was"):
        load_manifest(before.fingerprint, settings=settings)
    assert by_path(folder, settings).fingerprint != before.fingerprint


@pytest.mark.parametrize(
    ("place", "seen"),
    [
        (12, True),  # in the header
        (3 * 7 * (1 << 20) // (PAGES + 1) + PAGE - 1, True),  # the third page's last byte
        (3 * 7 * (1 << 20) // (PAGES + 1) + PAGE, False),  # the first behind it
        (7 * (1 << 20) - 1, True),
        (7 * (1 << 20) - hashing.EDGE, True),
    ],
)
def test_what_samples_see(tmp_path, monkeypatch, place, seen):
    """The scheme as it is documented, its blind spot too; in the hub's cache times and inode tell nothing."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    nbytes, blobs = 7 * (1 << 20), tmp_path / "models--org--mini" / "blobs"
    blobs.mkdir(parents=True)
    path, link = blobs / ("a" * 64), tmp_path / WEIGHTS
    link.symlink_to(path)
    header = json.dumps({"__metadata__": {"a": "b" * 100}}).encode()
    start = len(header).to_bytes(8, "little") + header
    path.write_bytes(start + bytes(nbytes - len(start)))
    before = quick_digest(link, link.name)
    assert quick_digest(link, link.name) == before
    change(path, place, unseen=True)
    assert (quick_digest(link, link.name) != before) is seen


def test_a_change_between_the_samples_is_seen_though_the_time_is_put_back(tmp_path):
    path = tmp_path / WEIGHTS
    path.write_bytes(bytes(7 * (1 << 20)))
    before = quick_digest(path, path.name)
    change(path, 3 * path.stat().st_size // (PAGES + 1) + PAGE, unseen=True)
    assert quick_digest(path, path.name) != before  # by the time at which the inode changed


def as_blob(snapshot: Path) -> Path:
    """Name a weight file of a hub's cache by its SHA-256, as the hub names what is stored by LFS."""
    link = snapshot / WEIGHTS
    blob = link.resolve()
    named = blob.rename(blob.with_name(sha256(blob)))
    link.unlink()
    link.symlink_to(named)
    return named


def cached(large: Path, place: Path) -> Path:
    (snapshot,) = (hub_cache(large, "org/mini", place) / "models--org--mini" / "snapshots").iterdir()
    as_blob(snapshot)
    return snapshot


def test_blobs_of_the_hubs_cache_are_known_by_their_names(large, settings, tmp_path, monkeypatch):
    prints = []
    for place in ("one", "other"):
        snapshot = cached(large, tmp_path / place)
        monkeypatch.setenv("HF_HUB_CACHE", str(snapshot.parents[2]))
        manifest = by_path(snapshot, settings)
        (weights,) = (file for file in manifest.files if file.name == WEIGHTS)
        assert weights.sha256 is None  # which nobody has computed here
        prints.append(manifest.fingerprint)
    assert prints[0] == prints[1]  # on another machine too


def test_a_folder_that_is_laid_out_as_the_hubs_cache_takes_nobodys_fingerprint(large, settings, tmp_path, monkeypatch):
    """Its second copy is changed between the samples, and keeps the name of its blob."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    prints = set()
    for place in ("one", "other"):
        snapshot = cached(large, tmp_path / place)
        if place == "other":
            blob = (snapshot / WEIGHTS).resolve()
            change(blob, 3 * blob.stat().st_size // (PAGES + 1) + PAGE, unseen=True)
        manifest = by_path(snapshot, settings)
        prints.add(manifest.fingerprint)
        checkpoint = StagedCheckpoint(manifest, settings=settings)
        (told,) = (
            file.sha256
            for file in answer("overview", checkpoint, progress=silent, hash_files=True).files
            if file.name == WEIGHTS
        )
        assert told == sha256(snapshot / WEIGHTS)
    assert len(prints) == 2


def test_each_digest_is_kept_as_soon_as_it_is_known(tmp_path):
    files = {name: tmp_path / name for name in ("a", "b")}
    for name, path in files.items():
        path.write_bytes(name.encode() * 3_000_000)
    expected = {name: sha256(path) for name, path in files.items()}
    cache = HashCache(tmp_path / "hashes.json")
    assert cache.digests({"a": files["a"]}, progress=silent) == {"a": expected["a"]}
    first = (tmp_path / "hashes.json").read_bytes()
    assert cache.digests(files, progress=silent) == expected
    assert (tmp_path / "hashes.json").read_bytes().startswith(first)  # added to, not rewritten


def test_known_digests_are_not_computed_again_and_damaged_ones_are(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1_000)
    kept = tmp_path / "hashes.json"
    cache = HashCache(kept)
    (digest,) = cache.digests({"a": path}, progress=silent).values()
    hashed = []
    monkeypatch.setattr(hashing, "hash_file", lambda path, told: hashed.append(path) or sha256(path))
    assert cache.digests({"a": path}, progress=silent) == {"a": digest}
    assert hashed == []
    kept.write_bytes(kept.read_bytes()[:-70])  # cut off
    assert cache.digests({"a": path}, progress=silent) == {"a": digest}
    kept.write_bytes(b'\xff{"a": [1]}\n[]\n' + b"[" * 100_000)
    assert cache.digests({"a": path}, progress=silent) == {"a": digest}
    assert cache.digests({"a": path}, progress=silent) == {"a": digest}
    assert len(hashed) == 2


def test_a_file_that_changes_while_it_is_hashed_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1_000)

    def changed(path, told):
        os.utime(path, (1, 1))
        return "0" * 64

    monkeypatch.setattr(hashing, "hash_file", changed)
    with pytest.raises(CheckpointError) as error:
        HashCache(tmp_path / "hashes.json").digests({"a": path}, progress=silent)
    assert str(error.value) == "a changed while it was read: open it again."
    assert not (tmp_path / "hashes.json").exists()


def test_a_file_that_was_hashed_ahead_is_known_by_the_same_and_read_once(large, monkeypatch):
    files = {path.name: path for path in large.iterdir()}
    expected = identify(files, owned=False, progress=silent)
    read: list[Path] = []
    taken = hashing.quick_digest
    monkeypatch.setattr(hashing, "quick_digest", lambda path, name: read.append(path) or taken(path, name))
    ahead = BackgroundHasher(lambda: files)
    ahead.digest(large / WEIGHTS, WEIGHTS)
    assert read == [large / WEIGHTS]
    assert identify(files, owned=False, progress=silent, ahead=ahead) == expected
    assert read == [large / WEIGHTS]


def test_a_file_that_has_changed_since_is_hashed_again(large):
    path = large / WEIGHTS
    ahead = BackgroundHasher(lambda: {path.name: path})
    before = ahead.digest(path, path.name)
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    os.utime(path, ns=(0, 0))
    assert ahead.digest(path, path.name) == quick_digest(path, path.name) != before


def test_what_was_not_found_ahead_is_hashed_when_it_is_asked_for(large):
    def refuse():
        raise CheckpointError("There is no such folder.")

    assert BackgroundHasher(refuse).digest(large / WEIGHTS, WEIGHTS) == quick_digest(large / WEIGHTS, WEIGHTS)


@pytest.fixture
def stored(settings, tmp_path) -> str:
    """The fingerprint of an upload in the store."""
    return opened(upload_of(settings, small_checkpoint(tmp_path / "mini")), settings)[0].fingerprint


def test_stored_weights_are_hashed_before_a_process_uses_their_numbers(settings, stored):
    before = load_manifest(stored, settings=settings)
    before.verify(silent)
    (path,) = (file.path for file in before.files if file.name == WEIGHTS)
    with path.open("r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"\x01" * 100)
    after = load_manifest(stored, settings=settings)
    assert after.tensors.names == before.tensors.names  # headers answer still
    for read in (lambda: after.verify(silent), lambda: after.paths, lambda: after.bytes_of(WEIGHTS)):
        with pytest.raises(CheckpointError) as error:
            read()
        assert str(error.value) == (
            f"{WEIGHTS} in the store is no longer what was uploaded: delete the upload, and upload it again."
        )


def test_stored_weights_are_hashed_once_in_a_process(settings, stored, monkeypatch):
    hashed = []
    whole = hashing.hash_file
    monkeypatch.setattr(hashing, "hash_file", lambda path, *told: hashed.append(path.name) or whole(path, *told))
    for _ in range(2):
        assert load_manifest(stored, settings=settings).bytes_of(WEIGHTS)
    assert hashed == [WEIGHTS]
