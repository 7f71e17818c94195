"""A command's processes: the fork server is started before the command line, and what opens may answer."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from inspector.catalog import answer
from inspector.engine.choice import start_engine
from inspector.engine.forking import fork_servers
from inspector.engine.starting import ahead
from inspector.errors import SettingsError
from inspector.models.checkpoint import Checkpoint
from inspector.settings import read_settings
from inspector.store.manifests.entries import load_manifest
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.engine.engine_harness import WAIT


@pytest.fixture(autouse=True)
def no_fork_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LC_ALL", f"C.{tmp_path.name}")
    monkeypatch.delattr(fork_servers, "fork")  # of tests/conftest.py, before the class's own


def started_for(tmp_path: Path, *modules: str) -> list[int]:
    """The fork servers with this test's environment, that were given these modules."""
    found = []
    for process in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            line, environment = process.cmdline(), process.environ()
            if "inspector.engine.forkserver" in line and environment.get("LC_ALL") == f"C.{tmp_path.name}":
                found += [process.pid] if set(modules) <= set(line) else []
    return found


@pytest.mark.parametrize("verb", ["overview", "placement"])
def test_a_command_forks_from_what_was_started_ahead(verb, tmp_path, monkeypatch):
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path)})
    monkeypatch.setattr(ahead, "settings", lambda: settings)
    ahead.start_ahead(verb)
    started = started_for(tmp_path)
    engine = start_engine(settings, restrict_paths=False, spare=False, only=verb)
    try:
        opened = engine.open(CheckpointRef("demo", "demo-bert")).result(WAIT)
        holders = [worker.fingerprint for worker in engine.workers()]
        found = engine.run(opened.fingerprint, verb, called=[opened.name]).result(WAIT)
    finally:
        engine.close()
    assert len(started) == 1
    # Others are an engine's that the tests share: it may start a spare process meanwhile.
    assert started_for(tmp_path, *ahead.functions_for(verb).modules) == started
    assert holders == ([opened.fingerprint] if verb == "overview" else [])
    checkpoint = Checkpoint(load_manifest(opened.fingerprint, settings=settings), settings=settings)
    assert found == answer(verb, checkpoint, progress=silent)


def test_settings_that_are_wrong_are_told_later(monkeypatch, tmp_path):
    def refuse():
        raise SettingsError("INSPECTOR_MB is 'x': set it to a number.")

    monkeypatch.setattr(ahead, "settings", refuse)
    ahead.start_ahead("overview")
    assert started_for(tmp_path) == []


def test_a_cluster_forks_nothing_here(monkeypatch, tmp_path):
    monkeypatch.setattr(ahead, "settings", lambda: read_settings({"INSPECTOR_ENGINE": "ray"}))
    ahead.start_ahead("overview")
    assert started_for(tmp_path) == []
