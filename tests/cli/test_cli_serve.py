"""`serve` starts the app with a checkpoint open, or says why it does not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inspector.cli import main as cli
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
        assert command[1:] == ["-m", "streamlit", "run", str(ROOT / "app.py"), "--server.port=9000"]
        assert Path(environment["INSPECTOR_OPEN"].removeprefix("path:")).samefile(folder)


@pytest.mark.parametrize(
    ("typed", "reference"), [("demo-gpt2", "demo-gpt2"), ("org/name", "hub:org/name"), (None, None)]
)
def test_it_starts_with_what_has_a_name(
    typed: str | None, reference: str | None, started: list[tuple[str, list[str], dict[str, str]]]
) -> None:
    assert CliRunner().invoke(cli.app, ["serve", *([typed] if typed else [])]).exit_code == 0
    assert started[0][2].get("INSPECTOR_OPEN") == reference


def test_what_is_not_there_is_one_sentence(started: list[tuple[str, list[str], dict[str, str]]]) -> None:
    done = CliRunner().invoke(cli.app, ["serve", "./no-such-folder"])
    assert (done.exit_code, started) == (2, [])
    assert "There is no './no-such-folder' on this disk" in done.stderr
