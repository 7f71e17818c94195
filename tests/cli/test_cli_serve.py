"""`serve` starts the app with a checkpoint open, or says why it does not."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inspector.cli import main as cli
from inspector.cli import server
from inspector.cli.server import PORTS, free_port
from inspector.demo import DEMOS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str], dict[str, str]]]:
    """What would have taken this process's place."""
    calls: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda *call: calls.append(call))
    return calls


def test_it_starts_with_a_checkpoint_of_this_machine(
    started: list[tuple[str, list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DEMOS["demo-bert"].folder
    monkeypatch.setenv("HOME", str(folder.parent))
    for typed in (str(folder), f"~/{folder.name}", os.path.relpath(folder)):
        done = CliRunner().invoke(cli.app, ["serve", typed, "--port", "9000"])
        assert done.exit_code == 0, done.output
        program, command, environment = started.pop()
        assert program == command[0] == sys.executable
        assert command[1:] == ["-P", "-m", "streamlit", "run", str(ROOT / "app.py"), "--server.port=9000"]
        assert Path(environment["INSPECTOR_OPEN"].removeprefix("path:")).samefile(folder)


@pytest.mark.parametrize(
    ("typed", "reference"), [("demo-gpt2", "demo-gpt2"), ("org/name", "hub:org/name"), (None, None)]
)
def test_it_starts_with_what_has_a_name(
    typed: str | None, reference: str | None, started: list[tuple[str, list[str], dict[str, str]]]
) -> None:
    assert CliRunner().invoke(cli.app, ["serve", *([typed] if typed else [])]).exit_code == 0
    assert started[0][2].get("INSPECTOR_OPEN") == reference


def test_it_listens_where_it_is_told(started: list[tuple[str, list[str], dict[str, str]]]) -> None:
    typed = ["serve", "--port=9000", "--address", "0.0.0.0", "--host", "a.example.org", "--host", "b.example.org"]
    assert CliRunner().invoke(cli.app, typed).exit_code == 0
    assert started[0][1][-4:] == [
        "--server.address=0.0.0.0",
        "--server.allowedHosts=a.example.org",
        "--server.allowedHosts=b.example.org",
        "--browser.serverAddress=a.example.org",
    ]


def test_a_port_in_use_is_refused_if_it_was_asked_for_and_another_taken_if_not(
    started: list[tuple[str, list[str], dict[str, str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(cli.app, ["serve", "--port", str(port)])
        assert (done.exit_code, started) == (2, [])
        assert done.stderr == (
            f"Port {port} is in use, perhaps by an inspector that runs already: choose another with --port.\n"
        )
        chosen = free_port(None, first=port)
        assert port < chosen < port + PORTS
        assert capsys.readouterr().err == f"Port {port} is in use: the app listens on port {chosen}.\n"


def test_a_port_that_the_system_reserves_is_not_called_one_in_use(
    started: list[tuple[str, list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(address: tuple[str, int]) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "create_server", refuse)
    done = CliRunner().invoke(cli.app, ["serve", "--port", "80"])
    assert (done.exit_code, started) == (2, [])
    assert done.stderr == "You have no rights to listen on port 80: choose one from 1,024 on with --port.\n"


@pytest.mark.parametrize("port", ["0", "-1", "65536", "99999999"])
def test_what_is_no_port_is_refused(started: list[tuple[str, list[str], dict[str, str]]], port: str) -> None:
    done = CliRunner().invoke(cli.app, ["serve", f"--port={port}"])
    assert (done.exit_code, started) == (2, [])
    assert "between 1 and 65,535" in done.stderr


def test_a_machine_without_torch_or_a_sandbox_serves_what_it_can(
    started: list[tuple[str, list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "platform", "darwin")
    done = CliRunner().invoke(cli.app, ["serve", "demo-bert"])
    assert done.exit_code == 0
    assert len(started) == 1
    said = "What reads numbers or asks the model's class has to wait. This needs torch, which is not installed: run pip"
    assert said in done.stderr
    assert "Workers are not sandboxed on this system: open only checkpoints that you trust." in done.stderr


def test_what_is_not_there_is_one_sentence(started: list[tuple[str, list[str], dict[str, str]]]) -> None:
    done = CliRunner().invoke(cli.app, ["serve", "./no-such-folder"])
    assert (done.exit_code, started) == (2, [])
    assert "There is no './no-such-folder' on this disk" in done.stderr
