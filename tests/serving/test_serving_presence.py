"""What the commands `limits` and `store` tell of a server that runs on the home, and of one that was killed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inspector.serving import presence
from inspector.serving.presence import show_server
from inspector.serving.readiness import Readiness
from inspector.serving.trial import Server, start_app, wait_until_up
from inspector.settings import Settings, read_settings
from inspector.store.keeping.servers import SERVERS, SHOWN, running_servers
from tests.models.loops import run
from tests.serving.engine.engine_harness import eventually


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings({"INSPECTOR_HOME": str(tmp_path / "home"), "INSPECTOR_STORE_MB": "7"})


def commands(home: Path) -> dict[str, dict[str, Any]]:
    """What both verbs print, in a shell whose settings are others than the server's."""
    environment = {**os.environ, "INSPECTOR_HOME": str(home / "store"), "INSPECTOR_WORKERS": "3"}
    return {
        verb: json.loads(
            subprocess.run(
                [sys.executable, "-m", "inspector", verb, "--json"],
                capture_output=True, text=True, check=True, env=environment,
            ).stdout
        )
        for verb in ("limits", "store")
    }  # fmt: skip


def workers(limits: dict[str, Any]) -> int:
    return next(each["value"] for each in limits["limits"] if each["setting"] == "INSPECTOR_WORKERS")


@pytest.fixture
def server(tmp_path: Path):
    server = start_app(tmp_path, INSPECTOR_WORKERS="2", INSPECTOR_STORE_MB="77", INSPECTOR_CONFINEMENT="off")
    yield server
    if server.process.poll() is None:
        server.stop()


def test_the_commands_tell_of_the_server_that_runs_and_not_of_one_that_was_killed(server: Server, tmp_path: Path):
    wait_until_up(server)
    wait_until_shown(read_settings({"INSPECTOR_HOME": str(tmp_path / "store")}))
    found = commands(tmp_path)
    assert workers(found["limits"]) == 2
    assert found["limits"]["confinement"] == "off"
    assert not any(each["enforced"] for each in found["limits"]["restrictions"])
    assert found["limits"]["server"]["pid"] == server.process.pid
    assert found["store"]["servers"] == [found["limits"]["server"]]
    assert found["store"]["quota_nbytes"] == 77_000_000
    server.process.kill()
    server.process.wait()
    found = commands(tmp_path)
    assert (found["limits"]["server"], found["store"]["servers"]) == (None, [])
    assert (workers(found["limits"]), found["limits"]["confinement"]) == (3, "auto")
    assert not [*(tmp_path / "store" / SERVERS).iterdir()]  # what it left is gone


def wait_until_shown(settings: Settings) -> None:
    """Until a server shows itself; it does so right after it answers."""
    eventually(lambda: running_servers(settings))


def shown_while(settings: Settings, look: Callable[[Settings], tuple[str, ...]], until: Callable[[], bool]) -> None:
    """Show a server of this process until something holds."""

    async def shown() -> None:
        showing = asyncio.create_task(show_server(settings, Readiness(settings, look=look)))
        await asyncio.to_thread(eventually, until)
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)

    run(shown())


def test_what_is_wrong_is_shown_as_soon_as_it_is_found_and_nothing_once_the_server_stops(settings, monkeypatch):
    monkeypatch.setattr(presence, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr("inspector.serving.readiness.FRESH_SECONDS", 0.0)
    seen = []

    def until() -> bool:
        seen.extend(server.not_ready for server, _ in running_servers(settings))
        return ("The disk is full.",) in seen

    shown_while(settings, lambda _: ("The disk is full.",) if () in seen else (), until)
    assert seen[0] == ()
    assert running_servers(settings) == ()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"server": 3, "limits": []}', '{"server": {"pid": 1}}'])
def test_what_cannot_be_read_is_no_server(settings, monkeypatch, text):
    monkeypatch.setattr(presence, "LOOK_SECONDS", 0.01)

    def damaged() -> bool:
        shown = [*settings.home.glob(f"{SERVERS}/*/{SHOWN}")]
        for each in shown:
            each.write_text(text)
        return bool(shown) and running_servers(settings) == ()

    shown_while(settings, lambda _: (), damaged)
