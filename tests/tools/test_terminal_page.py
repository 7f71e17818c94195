"""The page of terminal outputs shows what the verbs print."""

from __future__ import annotations

import re

import pytest

from inspector.catalog import CATALOG
from tools.terminal_page import COMMANDS, FILE, WIDTH, run

# What machines compute alike but for the last digits: numbers, and the lengths and marks that follow from them.
ROUNDED = re.compile(r"[\d.,e−+·░▒▓█▏▎▍▌▋▊▉ -]+")
EXACT = ("overview", "sharing", "classes", "tokenize", "check")  # verbs of names, counts and sizes


def on_the_page(command: str) -> str:
    text = FILE.read_text("utf-8").partition(f"$ checkpoint-inspector {command}\n")[2]
    return text.partition("```")[0]


def test_it_has_every_verb_once():
    assert sorted(command.partition(" ")[0] for command in COMMANDS) == sorted(
        CATALOG.keys() - {"adapter", "verify-merge", "experts"}
    )  # no adapter is bundled, and no mixture of experts


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.partition(" ")[0])
def test_it_shows_what_is_printed(command, tmp_path, monkeypatch):
    monkeypatch.setenv("INSPECTOR_HOME", str(tmp_path))
    printed, shown = run(command), on_the_page(command)
    assert shown, "run python -m tools.terminal_page"
    if command.partition(" ")[0] in EXACT:
        assert printed == shown, "run python -m tools.terminal_page"
    else:
        assert ROUNDED.sub("#", printed) == ROUNDED.sub("#", shown), "run python -m tools.terminal_page"
    lines = printed.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) <= 60


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.partition(" ")[0])
def test_nothing_reads_like_a_field_of_the_json(command):
    text = on_the_page(command)
    assert not re.search(r"nbytes|neighbours|[0-9a-f]{32}", text, re.IGNORECASE)
    assert not re.search(r"\b[a-z]+_[a-z]+_?[a-z]*: ", text)
