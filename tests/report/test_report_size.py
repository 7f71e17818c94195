"""A report of a checkpoint with very many names can be sent by mail: what it lists, it lists by pattern."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.engine.local import LocalEngine
from inspector.report.making import make_report
from inspector.report.page import write_page
from inspector.settings import read_settings
from inspector.store.hashing import HASHES
from inspector.store.manifests.entries import MAPS
from inspector.store.reference import CheckpointRef
from tools.bench._sparse import SHAPES, write

MOST_NBYTES = 5_000_000
SECTIONS = ("overview", "sharing", "training")


@pytest.fixture
def engine(tmp_path):
    engine = LocalEngine(
        read_settings({"INSPECTOR_HOME": str(tmp_path / "home")}), restrict_paths=False, spare=False
    )  # fmt: skip
    yield engine
    engine.close()


def know_hashes(folder: Path, cache: Path) -> None:
    """Let a report find the SHA-256 of each shard, of which it would read 671 GB of zeros."""
    cache.parent.mkdir(parents=True, exist_ok=True)
    stats = {path: path.stat() for path in folder.glob("*.safetensors")}
    keys = [f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}" for path, stat in stats.items()]
    cache.write_text("".join(f"{json.dumps({key: '0' * 64})}\n" for key in keys))


def test_a_report_of_ninety_thousand_names_stays_small(engine, tmp_path):
    write(tmp_path / "V3", SHAPES["V3"])
    opened = engine.open(CheckpointRef("path", str(tmp_path / "V3"))).result()
    know_hashes(tmp_path / "V3", tmp_path / "home" / MAPS / opened.fingerprint / HASHES)
    report = make_report(engine, opened, sections=SECTIONS)
    assert [part.slug for part in report.parts] == list(SECTIONS)
    assert not [part for part in report.parts if part.absent]
    listed = {table.name: len(table.frame) for part in report.parts for table in part.tables}
    assert max(listed.values()) >= SHAPES["V3"].tensors  # the page stays small, and its files hold every name
    page = write_page(report)
    assert "90,427 names are shown by pattern" in page
    assert "model.layers.[3–60]." in page
    assert len(page.encode()) < MOST_NBYTES
