"""The documents name what is there: the tree, every path, every setting, every command."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from inspector.cli.main import app
from tests.house.reading import ROOT

TOP = ("README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md")
DOCUMENTS = (*TOP, *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
INNER = {"INSPECTOR_COMPILED"}  # variables that one process sets for another
OPERATORS = {".streamlit/secrets.toml"}  # files that whoever runs a server writes


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def tree(text: str) -> Iterator[str]:
    """The paths of the tree block; a folder ends in a slash, and <…> stands for any name.

    Indentation by two spaces nests a line in the last line above it that is indented less. Two
    spaces part the names of a line from what is said about them.
    """
    (block,) = re.findall(r"```tree\n(.*?)```", text, re.DOTALL)
    above: list[str] = []
    for line in block.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.split(r"\s{2,}", line.strip(), maxsplit=1)[0].split()
        above = above[:depth]
        assert len(above) == depth, f"nothing holds {line!r}"
        yield from ("".join(above) + name for name in names)
        above += names if len(names) == 1 else []


def pattern(path: str) -> str:
    return re.sub(r"<[^>]*>", "*", path.rstrip("/"))


def test_the_tree_names_only_what_is_there():
    named = list(tree(text_of("ARCHITECTURE.md")))
    assert len(named) > 40
    for path in named:
        found = [each for each in ROOT.glob(pattern(path)) if each.is_dir() == path.endswith("/")]
        assert found, path


def paths(text: str, folder: str = ".") -> set[str]:
    """What stands in backticks or in links and names a file or folder of this repository.

    Links are relative to the folder in which the text lies.
    """
    tops = {path.name for path in ROOT.iterdir()}
    # Fenced blocks hold commands on files of the reader.
    spans = re.findall(r"`([^`\s]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    links = [os.path.normpath(f"{folder}/{link}") for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    named = {span for span in spans if "/" in span and span.partition("/")[0] in tops}
    named |= {span for span in spans if re.fullmatch(r"[\w-]+\.(md|txt|toml)", span)}
    return (named | set(links)) - OPERATORS


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_exists(name):
    named = paths(text_of(name), str(Path(name).parent))
    assert named or name not in TOP
    assert not {path for path in named if not any(ROOT.glob(pattern(path)))}


def test_every_setting_is_described():
    code = "\n".join(text_of(name) for name in tracked() if name.startswith("inspector/") and name.endswith(".py"))
    read = set(re.findall(r"\bINSPECTOR_[A-Z_]+[A-Z]\b", code)) - INNER
    described = set(re.findall(r"^\| (`INSPECTOR_.*?) \|", text_of("docs/settings.md"), re.MULTILINE))
    assert len(read) > 20
    assert {name for names in described for name in re.findall(r"INSPECTOR_\w+", names)} == read


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_verb_and_option_of_a_command_exists(name):
    whole: Any = get_command(app)
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", text_of(name), re.DOTALL))
    for line in re.findall(r"^checkpoint-inspector ([a-z].*?)(?:  +#.*)?$", blocks, re.MULTILINE):
        verb, *words = shlex.split(line.partition(" > ")[0])
        assert verb in whole.commands
        known = {option for each in whole.commands[verb].params for option in each.opts}
        assert {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)} <= known, line
