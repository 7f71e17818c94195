"""SECURITY.md lists every kind of file that the store has, with who writes it and who checks it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from inspector.serving.storing.arriving import Arriving
from inspector.serving.storing.marks import Told, write_told
from inspector.serving.storing.owners import Requester, write_owners
from inspector.serving.storing.registry import pin_checkpoint, write_upload
from inspector.serving.storing.room import reserve_upload
from inspector.serving.storing.shared import publishing as shared
from inspector.serving.storing.uploads import delete_upload
from inspector.settings import read_settings
from inspector.store.files import acquire, workspace
from inspector.store.hashing import HASHES, HashCache
from inspector.store.keeping.arrays import ArrayCache
from inspector.store.keeping.compiled import put_compiled
from inspector.store.keeping.holding import load_held
from inspector.store.manifests.entries import UPLOADS, results_folder
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.store.store_builders import opened, small_checkpoint, upload_of

ROOT = Path(__file__).parents[2]
WORDS = {"FINGERPRINT": "[0-9a-f]{64}", "DIGEST": "[0-9a-f]{64}", "ID": "[0-9a-f]{32}", "NAME": r"[\w.%-]+", "…": ".+"}
# tests/serving/engine/test_engine_worker_folder.py
MADE_ELSEWHERE = {"workers/ID/own/…", "workers/ID/given/…", "compiled/…"}
CARRYING = shared.Carrying(progress=silent, stopped=lambda: False)


def kinds_of(title: str) -> dict[str, re.Pattern[str]]:
    """The kinds that a table's first column lists, and what they look like."""
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    rows = text.partition(f"| {title} |")[2].partition("\n\n")[0].splitlines()[2:]
    kinds = [kind for row in rows for kind in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert kinds, "no such table"
    return {
        kind: re.compile(re.sub("FINGERPRINT|DIGEST|ID|NAME|…", lambda m: WORDS[m[0]], re.escape(kind)))
        for kind in kinds
    }


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


@pytest.fixture
def used(tmp_path, settings):
    """Two places where everything that the store does has been done once."""
    (tmp_path / "shared").mkdir()
    place = {"INSPECTOR_HOME": str(settings.home), "INSPECTOR_STORE": f"file://{tmp_path / 'shared'}"}
    settings = read_settings(place)
    folder = small_checkpoint(tmp_path / "mini")
    fingerprint = opened(upload_of(settings, folder), settings)[0].fingerprint
    gone = opened(upload_of(settings, small_checkpoint(tmp_path / "other", seed=1)), settings)[0].fingerprint
    for each in (fingerprint, gone):
        shared.publish(each, settings=settings, carrying=CARRYING)
    delete_upload(gone, settings=settings, asker=Requester())
    pin_checkpoint(fingerprint, pinned=True, settings=settings)
    write_owners(settings.home / UPLOADS / fingerprint, {})
    folder = small_checkpoint(tmp_path / "third", seed=2)
    where = opened(CheckpointRef("path", str(folder)), settings, strangers=False)[0]
    for each in (fingerprint, where.fingerprint):
        load_held(each, settings=settings)
    ArrayCache(results_folder(where.fingerprint, settings=settings)).put({"k": 1}, {"a": np.ones(2)})
    HashCache(results_folder(where.fingerprint, settings=settings) / HASHES).digests(
        {"a": folder / "config.json"}, progress=silent
    )
    sent = Arriving(10, settings).close()
    _, arriving = reserve_upload(10, settings)
    write_upload(arriving, "mini/a file.bin", b"x")
    write_told(arriving, Told(fingerprint, "mini", ()))
    built = settings.home / "compiled" / ".new-x"
    (built / "room").mkdir(parents=True)
    (built / "room" / "index.nbi").write_bytes(b"x")
    put_compiled(built, built.parent, "v1")
    for folder in (built.parent, settings.home / "workers" / ("0" * 32)):
        folder.mkdir(parents=True, exist_ok=True)
        os.close(acquire(folder) or 0)
    with workspace(settings.home) as temporary:
        (temporary / "unpacked").write_bytes(b"x")
        yield settings.home, tmp_path / "shared"
    assert sent.path


def test_every_file_of_a_used_store_is_of_a_kind_that_the_table_has(used):
    for folder, title in zip(used, ("file below `INSPECTOR_HOME`", "file in the shared store"), strict=True):
        kinds, found = kinds_of(title), files_below(folder)
        unknown = {file for file in found if not any(kind.fullmatch(file) for kind in kinds.values())}
        assert not unknown
        missing = {name for name, kind in kinds.items() if not any(kind.fullmatch(file) for file in found)}
        assert missing <= MADE_ELSEWHERE
