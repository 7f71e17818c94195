"""What the server tells of itself when its store, its engine or its files fail, and when they are there again."""

from __future__ import annotations

import errno
import logging
import shutil
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from inspector.errors import SettingsError
from inspector.serving import readiness
from inspector.serving.engine.ray import cluster
from inspector.serving.readiness import (
    FRESH_SECONDS,
    LATE_SECONDS,
    NO_FILES,
    SILENT,
    STARTING,
    Readiness,
    ReadyAddress,
    check_start,
    faults,
)
from inspector.settings import Settings, read_settings
from tests.serving.test_serving_door import ask


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings({"INSPECTOR_HOME": str(tmp_path / "home")})


async def elsewhere(scope, receive, send):
    await send({"type": "http.response.start", "status": 418, "headers": []})


def test_a_server_that_can_work_is_ready_and_leaves_nothing_behind(settings):
    check_start(settings)
    address = ReadyAddress(elsewhere, readiness=Readiness(settings))
    start, body = ask(address, "/_stcore/ready")
    assert (start["status"], body["body"]) == (200, b"ready")
    assert [ask(address, path, method)[0]["status"] for path, method in (
        ("/", "GET"), ("/_stcore/health", "GET"), ("/_stcore/ready", "PUT"), ("/_stcore/ready/x", "GET"),
    )] == [418] * 4  # fmt: skip
    assert [*settings.home.iterdir()] == []


def test_a_home_that_is_no_folder_stops_the_start_in_a_sentence(settings):
    settings.home.parent.mkdir(exist_ok=True)
    settings.home.write_bytes(b"")
    with pytest.raises(SettingsError, match=r"store's folder cannot be written \(.*\): set INSPECTOR_HOME") as refused:
        check_start(settings)
    assert str(settings.home) not in str(refused.value)


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.EMFILE, NO_FILES), (errno.ENOSPC, "disk of the store is full"), (errno.EROFS, "Read-only file system")],
)
def test_what_stops_writing_is_named(monkeypatch, settings, number, words):
    def refused(**_: object) -> None:
        raise OSError(number, {errno.EROFS: "Read-only file system"}.get(number, ""))

    monkeypatch.setattr(readiness.tempfile, "TemporaryFile", refused)
    (fault,) = faults(settings)
    assert words in fault


def test_a_full_disk_stops_no_start_since_people_make_room_in_the_app(monkeypatch, settings):
    def refused(**_: object) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(readiness.tempfile, "TemporaryFile", refused)
    check_start(settings)
    assert faults(settings)


def test_a_store_that_hangs_holds_one_thread_and_is_told_of(settings):
    now, began, goes_on = [0.0], Event(), Event()

    def hangs(_: Settings) -> tuple[str, ...]:
        began.set()
        goes_on.wait()
        return ()

    known = Readiness(settings, look=hangs, clock=lambda: now[0])
    thread = Thread(target=known.look)
    thread.start()
    began.wait()
    try:
        assert known.look() == (STARTING,)
        now[0] = LATE_SECONDS + 1
        assert known.look() == (SILENT,)
    finally:
        goes_on.set()
        thread.join()
    assert known.look() == ()


def test_a_cluster_without_ray_stops_the_start(monkeypatch, settings):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="Ray is not installed"):
        check_start(replace(settings, engine="ray"))


@pytest.mark.parametrize("address", ["ray://head:10001", "local"])
def test_an_address_of_another_kind_of_server_stops_the_start(monkeypatch, settings, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    check_start(settings)  # which computes here
    with pytest.raises(SettingsError, match=r"^RAY_ADDRESS points to another kind of server: set it to "):
        check_start(replace(settings, engine="ray"))


def test_a_cluster_of_which_no_replica_answers_is_told_and_stops_no_start(monkeypatch, settings):
    served = replace(settings, engine="ray")
    monkeypatch.setattr(readiness, "cluster_fault", lambda found: "No replica." if found == served else "")
    check_start(served)
    start, body = ask(ReadyAddress(elsewhere, readiness=Readiness(served)), "/_stcore/ready")
    assert (start["status"], body["body"]) == (503, b"No replica.")
    assert faults(settings) == ()


def test_a_shared_store_that_goes_and_comes_is_told_to_whoever_asks_and_in_the_log(settings, tmp_path, caplog):
    shared, now = tmp_path / "shared", [0.0]
    shared.mkdir()
    served = replace(settings, store=f"file://{shared}")
    check_start(served)
    known = Readiness(served, clock=lambda: now[0])
    address = ReadyAddress(elsewhere, readiness=known)
    with caplog.at_level(logging.INFO):
        assert ask(address, "/_stcore/ready")[0]["status"] == 200
        shutil.rmtree(shared)
        assert ask(address, "/_stcore/ready")[0]["status"] == 200  # found a moment ago
        for _ in range(2):
            now[0] += FRESH_SECONDS + 1
            start, body = ask(address, "/_stcore/ready")
            assert (start["status"], b"shared store's folder does not exist" in body["body"]) == (503, True)
            assert str(tmp_path).encode() not in body["body"]
        check_start(served)  # a server may start before the folder is mounted
        shared.mkdir()
        now[0] += FRESH_SECONDS + 1
        assert ask(address, "/_stcore/ready")[0]["status"] == 200
    assert [record.getMessage() for record in caplog.records] == ["not ready", "ready again"]
    assert "folder does not exist" in caplog.records[0].__dict__["facts"]["reason"]
