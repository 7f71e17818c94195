"""The store's account: what is counted, what goes, what stays, and what a deletion leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from inspector.errors import CheckpointError
from inspector.serving.storing.registry import (
    delete_checkpoint,
    discard_upload,
    pin_checkpoint,
    rename_checkpoint,
    write_upload,
)
from inspector.serving.storing.room import make_room, reserve_upload
from inspector.settings import MB, read_settings
from inspector.store.hashing import HASHES
from inspector.store.keeping import holding
from inspector.store.keeping.arrays import ArrayCache
from inspector.store.keeping.holding import load_held
from inspector.store.keeping.quota import RESERVED, account, trim
from inspector.store.manifests.entries import load_manifest
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from tests.conftest import silent
from tests.store.store_builders import opened, pack, small_checkpoint, upload_of, uploaded

OLD = 1_000_000_000.0  # seconds since 1970: long before anything here
LONG_AGO = time.time() - 2 * holding.RECENT_SECONDS

HOLD = """
import sys
from inspector.settings import settings
from inspector.store.keeping.holding import load_held
from inspector.errors import CheckpointError
load_held(sys.argv[1], settings=settings())
print("held", flush=True)
for line in sys.stdin:
    try:
        print(load_held(sys.argv[1], settings=settings()).name, flush=True)
    except CheckpointError as error:
        print(error, flush=True)
"""
UPLOAD = """
import sys
from pathlib import Path
import inspector.serving.storing.origins
from inspector.errors import CheckpointError
from inspector.settings import settings
from inspector.store.opening import open_checkpoint
from inspector.serving.storing.room import reserve_upload
from inspector.store.reference import CheckpointRef
from inspector.serving.storing.registry import write_upload
files = sorted(Path(sys.argv[1]).iterdir())
print("ready", flush=True)
sys.stdin.readline()
try:
    upload, folder = reserve_upload(sum(path.stat().st_size for path in files), settings())
    for path in files:
        write_upload(folder, path.name, path.read_bytes())
    manifest, _ = open_checkpoint(CheckpointRef("incoming", upload), settings=settings(),
                                  progress=lambda *_: None, restrict_paths=True)
    print(manifest.fingerprint, flush=True)
except CheckpointError as error:
    print(error, flush=True)
"""
WRITE = """
import sys
import numpy as np
from functools import partial
from inspector.settings import settings
from inspector.store.keeping.arrays import ArrayCache
from inspector.store.keeping.quota import trim
cache = ArrayCache(settings().home / "maps" / sys.argv[1], after_put=partial(trim, settings()))
for number in range(30):
    cache.put({"n": number}, {"x": np.full(50_000, number)})
    found = cache.get({"n": number})
    assert found is None or (found["x"] == number).all(), number
print("written", flush=True)
"""


class Other:
    """Another process on the same store."""

    def __init__(self, program: str, *arguments: str, settings, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env=os.environ | {"INSPECTOR_HOME": str(settings.home), **environ},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def told(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def ask(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> int:
        self.process.communicate()
        return self.process.returncode


@pytest.fixture
def folder(tmp_path) -> Path:
    return small_checkpoint(tmp_path / "mini")


def stored(settings, tmp_path, name: str, seed: int) -> str:
    """An upload in the store, not used for a while."""
    folder = small_checkpoint(tmp_path / name, seed=seed)
    fingerprint = opened(upload_of(settings, folder, prefix=f"{name}/"), settings)[0].fingerprint
    rest(settings.home / "checkpoints" / fingerprint, OLD + seed)
    return fingerprint


def rest(entry: Path, when: float = OLD) -> None:
    """Nobody has used an entry since then."""
    for name in (".lock", "manifest.json"):
        if (entry / name).exists():
            os.utime(entry / name, (when, when))


def small_store(settings, **changes):
    """The same store with a quota of what it holds now, and no byte more."""
    used = account(settings).used_nbytes
    return replace(settings, **{"store_nbytes": used, **changes})


def names(settings) -> set[str]:
    return {each.name for each in list_checkpoints(settings)}


def test_the_account_counts_every_byte_of_the_store(settings, tmp_path, folder):
    stored(settings, tmp_path, "one", 1)
    opened(CheckpointRef("path", str(folder)), settings, strangers=False)
    ArrayCache(settings.home / "maps" / ("ab" * 32)).put({"n": 1}, {"x": np.zeros(1000)})
    upload, _ = reserve_upload(12_345, settings)
    found = account(settings)
    kinds = {kind.name: (kind.entries, kind.nbytes) for kind in found.kinds}
    files = [path for path in settings.home.rglob("*") if path.is_file()]
    held = sum(path.stat().st_size for path in files if path.name not in (".lock", HASHES))

    assert found.used_nbytes == held == sum(nbytes for _, nbytes in kinds.values())
    assert kinds["arriving uploads"] == (1, 12_345)
    assert [kinds[name][0] for name in ("uploads", "maps and neighbors")] == [1, 1]
    assert kinds["copies of configurations and tokenizers"][0] == 1
    (one,) = found.uploads
    assert (one.name, one.pinned, one.in_use) == ("one", False, False)
    assert one.last_used.startswith("2001-")
    discard_upload(upload, settings=settings)


def test_a_full_store_refuses_an_upload_and_says_what_to_delete(settings, tmp_path):
    first, second = (stored(settings, tmp_path, name, seed) for name, seed in
                     (("second", 2), ("first", 1)))  # fmt: skip
    full = small_store(settings)
    with pytest.raises(CheckpointError) as error:
        reserve_upload(full.store_nbytes, full)
    size = {each.name: f"{each.nbytes / MB:,.1f} MB" for each in account(full).uploads}
    assert str(error.value) == (
        f"The store is full: it would need {full.store_nbytes / MB:,.1f} MB more than its "
        f"{full.store_nbytes / MB:,.1f} MB: delete first ({size['first']}) and second "
        f"({size['second']}), the least recently used, or set INSPECTOR_STORE_MB higher."
    )
    assert names(full) == {"first", "second"}
    assert not list((settings.home / "incoming").iterdir())
    delete_checkpoint(first, settings=full)
    reserve_upload(1000, full)
    assert second in {each.fingerprint for each in list_checkpoints(full)}


def test_an_upload_larger_than_the_store_is_refused_at_once(settings):
    tiny = replace(settings, store_nbytes=MB)
    with pytest.raises(CheckpointError, match=r"has 5\.0 MB, but the store is limited to 1\.0 MB"):
        reserve_upload(5 * MB, tiny)


def test_results_go_first_and_the_oldest_of_them(settings, tmp_path, folder):
    stored(settings, tmp_path, "kept", 1)
    maps = settings.home / "maps" / ("ab" * 32)
    cache = ArrayCache(maps)
    paths = []
    for number in range(4):
        before = set(maps.glob("*"))
        cache.put({"n": number}, {"x": np.full(1000, number)})
        (path,) = set(maps.glob("*")) - before
        os.utime(path, (LONG_AGO + number, LONG_AGO + number))
        paths.append(path)
    size = paths[0].stat().st_size
    full = small_store(settings)
    make_room(size + 1, full)

    assert [path.exists() for path in paths] == [False, False, True, True]
    assert names(full) == {"kept"}


def test_copies_in_use_stay_and_others_go(settings, tmp_path):
    entries = []
    for seed, name in enumerate(("idle", "held")):
        folder = small_checkpoint(tmp_path / name, seed=seed)
        manifest, _ = opened(CheckpointRef("path", str(folder)), settings, strangers=False)
        rest(manifest.folder.parent)
        entries.append(manifest.folder.parent)
    holder = Other(HOLD, entries[1].name, settings=settings)
    assert holder.told() == "held"
    rest(entries[1])
    full = small_store(settings)
    with pytest.raises(CheckpointError, match="The store is full"):
        make_room(full.store_nbytes, full)

    assert [entry.exists() for entry in entries] == [False, True]
    holder.ask()
    assert holder.told() == "held"
    assert holder.end() == 0
    rest(entries[1])
    assert not holding.is_used(entries[1])


@pytest.mark.parametrize("evict", ["results", "uploads"])
def test_uploads_go_only_where_the_settings_say_so(settings, tmp_path, evict):
    for seed, name in enumerate(("oldest", "older", "newer")):
        stored(settings, tmp_path, name, seed)
    full = small_store(settings, store_evict=evict)
    nbytes = account(full).uploads[0].nbytes
    if evict == "results":
        with pytest.raises(CheckpointError, match="The store is full"):
            reserve_upload(nbytes, full)
        assert names(full) == {"oldest", "older", "newer"}
    else:
        reserve_upload(nbytes, full)
        assert names(full) == {"older", "newer"}


def test_pinned_held_and_fresh_uploads_never_go(settings, tmp_path):
    pinned, held, fresh, idle = (
        stored(settings, tmp_path, name, seed) for seed, name in enumerate(("pinned", "held", "fresh", "idle"))
    )
    pin_checkpoint(pinned, pinned=True, settings=settings)
    holder = Other(HOLD, held, settings=settings)
    assert holder.told() == "held"
    rest(settings.home / "checkpoints" / held)
    os.utime(settings.home / "checkpoints" / fresh / "manifest.json")
    full = small_store(settings, store_evict="uploads")
    with pytest.raises(CheckpointError, match=r"delete held .* and fresh .*, the least recently used"):
        make_room(full.store_nbytes, full)

    assert names(settings) == {"pinned", "held", "fresh"}
    assert idle not in {each.fingerprint for each in list_checkpoints(settings)}
    told = {each.name: (each.pinned, each.in_use) for each in account(settings).uploads}
    assert told == {"pinned": (True, False), "held": (False, True), "fresh": (False, True)}
    holder.end()


def test_a_pin_outlives_a_new_name_and_the_same_upload_again(settings, tmp_path):
    fingerprint = stored(settings, tmp_path, "one", 1)
    pin_checkpoint(fingerprint, pinned=True, settings=settings)
    rename_checkpoint(fingerprint, "other", settings=settings)
    opened(upload_of(settings, tmp_path / "one"), settings)
    (found,) = list_checkpoints(settings)
    assert (found.name, found.pinned) == ("other", True)
    pin_checkpoint(fingerprint, pinned=False, settings=settings)
    assert not list_checkpoints(settings)[0].pinned
    with pytest.raises(CheckpointError, match="no longer in the store"):
        pin_checkpoint("0" * 64, pinned=True, settings=settings)


def test_an_archive_is_counted_as_it_unpacks(settings, folder, tmp_path):
    (folder / "extra_vocab.txt").write_text("x")
    packed = pack(folder, tmp_path / "mini.tar.gz")
    unpacked = sum(path.stat().st_size for path in folder.iterdir())
    reference = uploaded(settings, {packed.name: packed.read_bytes()})
    tiny = replace(settings, store_nbytes=unpacked // 2)
    with pytest.raises(CheckpointError, match="The store is full"):
        opened(reference, tiny)
    assert not list((settings.home / "incoming").iterdir())
    assert not list((settings.home / "workers").iterdir())
    assert list_checkpoints(settings) == ()


def test_a_reservation_counts_until_the_bytes_are_there(settings):
    upload, folder = reserve_upload(1000, settings)
    assert account(settings).used_nbytes == 1000
    write_upload(folder, "a.bin", b"x" * 400)
    assert account(settings).used_nbytes == 1000
    write_upload(folder, "b.bin", b"x" * 700)
    assert account(settings).used_nbytes == 1100
    assert (folder / RESERVED).stat().st_blocks == 0
    discard_upload(upload, settings=settings)
    assert account(settings).used_nbytes == 0


@pytest.mark.parametrize("damaged", [False, True])
def test_nothing_is_left_of_a_deleted_checkpoint(settings, folder, tmp_path, damaged):
    """The whole store is searched for the fingerprint, the digests and the weights' own bytes."""
    manifest, _ = opened(upload_of(settings, folder, prefix="mini/"), settings)
    by_path, _ = opened(CheckpointRef("path", str(folder)), settings, strangers=False)
    other = stored(settings, tmp_path, "other", 7)
    weights = next(file for file in manifest.files if file.format == "safetensors")
    maps = ArrayCache(settings.home / "maps" / manifest.fingerprint)
    maps.put({"n": 1}, {"x": np.zeros(10)})
    ArrayCache(settings.home / "maps" / ("0" * 64)).put({"n": 1}, {"x": np.zeros(10)})
    killed = settings.home / "incoming" / ("c" * 32)  # of a server that is gone
    killed.mkdir(parents=True)
    (killed / ".lock").touch()
    (killed / "_model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    assert by_path.fingerprint == manifest.fingerprint
    tensors = load_file(folder / "model.safetensors")
    needles = {
        "fingerprint": manifest.fingerprint.encode(),
        "digest": str(weights.sha256).encode(),
        "bytes": max(tensors.values(), key=lambda tensor: tensor.size).tobytes()[4096:4160],
    }
    assert found_in(settings.home, needles) == set(needles)
    if damaged:
        (settings.home / "checkpoints" / manifest.fingerprint / "manifest.json").write_bytes(b"{")
    delete_checkpoint(manifest.fingerprint, settings=settings)

    assert found_in(settings.home, needles) == set()
    assert load_manifest(other, settings=settings).name == "other"
    assert len(list((settings.home / "maps").iterdir())) == 1


def found_in(home: Path, needles: dict[str, bytes]) -> set[str]:
    found = set()
    for path in home.rglob("*"):
        text = str(path).encode() + (path.read_bytes() if path.is_file() else b"")
        found |= {name for name, needle in needles.items() if needle in text}
    return found


def test_another_server_learns_of_a_deletion_in_one_sentence(settings, tmp_path):
    fingerprint = stored(settings, tmp_path, "one", 1)
    holder = Other(HOLD, fingerprint, settings=settings)
    assert holder.told() == "held"
    delete_checkpoint(fingerprint, settings=settings)
    holder.ask()

    assert holder.told() == "This checkpoint is no longer in the store: open it again."
    assert holder.end() == 0
    assert not list((settings.home / "checkpoints").iterdir())
    again = opened(upload_of(settings, tmp_path / "one"), settings)[0]
    assert load_held(again.fingerprint, settings=settings).fingerprint == fingerprint


def test_what_is_uploaded_anew_is_held_anew(settings, tmp_path):
    fingerprint = stored(settings, tmp_path, "one", 1)
    entry = settings.home / "checkpoints" / fingerprint
    load_held(fingerprint, settings=settings)
    delete_checkpoint(fingerprint, settings=settings)
    opened(upload_of(settings, tmp_path / "one"), settings)
    load_held(fingerprint, settings=settings)
    rest(entry)
    asked = subprocess.run(
        [sys.executable, "-c", "import sys; from pathlib import Path; from inspector.store."
         "keeping import holding; print(holding.is_used(Path(sys.argv[1])))", str(entry)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert asked.stdout.strip() == "True"


@pytest.mark.parametrize("same", [True, False])
def test_two_servers_take_uploads_at_the_same_time(settings, tmp_path, same):
    folders = [small_checkpoint(tmp_path / f"model{seed}", seed=seed) for seed in range(2)]
    chosen = [folders[0], folders[0 if same else 1]]
    servers = [Other(UPLOAD, str(folder), settings=settings) for folder in chosen]
    assert [server.told() for server in servers] == ["ready"] * 2
    for server in servers:
        server.ask()
    said = [server.told() for server in servers]
    assert [server.end() for server in servers] == [0, 0]

    listed = {each.fingerprint for each in list_checkpoints(settings)}
    assert set(said) == listed
    assert len(listed) == (1 if same else 2)
    for fingerprint, folder in zip(said, chosen, strict=True):
        place = load_manifest(fingerprint, settings=settings).files
        kept = next(file.path for file in place if file.format == "safetensors")
        assert kept.read_bytes() == (folder / "model.safetensors").read_bytes()


def test_two_servers_never_take_more_than_the_store_may_hold(settings, tmp_path):
    folders = [small_checkpoint(tmp_path / f"model{seed}", seed=seed) for seed in range(2)]
    nbytes = sum(path.stat().st_size for path in folders[0].iterdir())
    megabytes = str(1.5 * nbytes / MB)
    if float(megabytes) < 1:
        megabytes = "1"
    servers = [Other(UPLOAD, str(folder), settings=settings, INSPECTOR_STORE_MB=megabytes) for folder in folders]
    assert [server.told() for server in servers] == ["ready"] * 2
    for server in servers:
        server.ask()
    said = [server.told() for server in servers]
    assert [server.end() for server in servers] == [0, 0]

    full = read_settings({"INSPECTOR_HOME": str(settings.home), "INSPECTOR_STORE_MB": megabytes})
    refused = [text for text in said if text.startswith("The store is full")]
    assert len(list_checkpoints(settings)) + len(refused) == 2
    assert account(full).used_nbytes <= full.store_nbytes
    assert len(refused) == (2 * nbytes > full.store_nbytes)


def test_eviction_while_others_write_leaves_whole_results(settings):
    servers = [Other(WRITE, digest, settings=settings, INSPECTOR_STORE_MB="2") for digest in ("ab" * 32, "cd" * 32)]
    tight = replace(settings, store_nbytes=2 * MB)
    while any(server.process.poll() is None for server in servers):
        trim(tight)
    assert [server.end() for server in servers] == [0, 0]
    trim(tight)
    assert account(tight).used_nbytes <= 2 * MB
    assert not list((settings.home / "maps").rglob(".new-*"))


def test_making_room_goes_on_while_others_delete_results(settings):
    """A folder of results may go at any moment: between its parent's listing and its own, too."""
    maps = settings.home / "maps"
    ended = threading.Event()

    def make_and_remove() -> int:
        rounds = 0
        while not (rounds and ended.is_set()):
            for number in range(20):
                (maps / str(number)).mkdir(parents=True, exist_ok=True)
            for number in range(20):
                (maps / str(number)).rmdir()
            rounds += 1
        return rounds

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(make_and_remove)
        try:
            for _ in range(500):
                trim(replace(settings, store_nbytes=-1))
        finally:
            ended.set()
        assert other.result() > 0  # it went on, too: no folder was taken from under it
    assert list(maps.iterdir()) == []


def test_a_read_only_store_is_read(settings, tmp_path):
    fingerprint = stored(settings, tmp_path, "one", 1)
    entry = settings.home / "checkpoints" / fingerprint
    (entry / ".lock").mkdir()  # no lock can be had there, for root either
    manifest, _ = open_checkpoint(
        CheckpointRef("upload", fingerprint), settings=settings, progress=silent,
        restrict_paths=True,
    )  # fmt: skip
    assert load_held(fingerprint, settings=settings) == manifest
    assert holding.is_used(entry)
