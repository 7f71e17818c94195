"""The command line imports what the verb that was typed needs, and runs it as the whole one does."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.catalog import CATALOG
from inspector.cli.main import app
from inspector.cli.start import with_verb

ROOT = Path(__file__).parents[2]
BEFORE_THE_SENTENCE = [
    f"inspector/{name}.py" for name in ("__init__", "__main__", "program", "cli/__init__", "cli/start")
]
SLOW = {"jinja2", "numpy", "pandas", "plotly", "ray", "torch"}
CODE = """
import sys
sys.argv[1:] = {typed!r}
import atexit
atexit.register(lambda: print("loaded:", *sorted(set(sys.modules) & {slow!r})))
from inspector.cli.start import main
main()
"""


def run(*typed: str) -> subprocess.CompletedProcess[str]:
    code = CODE.format(typed=list(typed), slow=SLOW)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_verb_loads_no_slow_library_before_it_is_asked():
    for verb in ("overview", "check", "sharing", "training"):
        done = run(verb, "no-such-thing")
        assert done.returncode == 2
        assert "no-such-thing" in done.stderr
        assert done.stdout.split("loaded:")[1].split() == []


def test_every_other_first_word_meets_the_whole_command_line():
    listed = run("--help").stdout
    verbs = [each.name or each.callback.__name__ for each in app.registered_commands if each.callback]
    assert {*CATALOG, "report", "serve"} <= set(verbs)
    assert all(verb in listed for verb in verbs)
    unknown = run("overveiw", "demo-bert")
    assert unknown.returncode == 2
    assert "No such command 'overveiw'" in unknown.stderr


VERBS = ["overview", "serve", "store", "check"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ([], ["serve"]),
        (["--port", "9000"], ["serve", "--port", "9000"]),
        (["demo-gpt2"], ["serve", "demo-gpt2"]),
        (["org/name", "--port=9000"], ["serve", "org/name", "--port=9000"]),
        (["./overview"], ["serve", "./overview"]),
        (["upload:0123456789ab"], ["serve", "upload:0123456789ab"]),
        (["overview", "demo-bert"], ["overview", "demo-bert"]),
        (["store"], ["store"]),
        (["--help"], ["--help"]),
        (["--version"], ["--version"]),
        (["overveiw"], ["overveiw"]),  # a verb, mistyped: not a checkpoint
        (["lense", "demo-bert"], ["lense", "demo-bert"]),
    ],
)
def test_a_checkpoint_alone_or_nothing_starts_the_app(typed: list[str], meant: list[str]) -> None:
    assert with_verb(typed, VERBS) == meant


def test_a_folder_named_almost_like_a_verb_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stores").mkdir()
    monkeypatch.chdir(tmp_path)
    assert with_verb(["stores"], VERBS) == ["serve", "stores"]
    assert with_verb(["overviews"], VERBS) == ["overviews"]


@pytest.mark.parametrize("path", BEFORE_THE_SENTENCE)
def test_an_older_python_reads_what_comes_before_that_sentence(path: str) -> None:
    """Those since 3.8 do: their grammar is enough, and no annotation is evaluated."""
    tree = ast.parse((ROOT / path).read_text("utf-8"), feature_version=(3, 8))
    annotated = any(getattr(node, "annotation", None) or getattr(node, "returns", None) for node in ast.walk(tree))
    postponed = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    assert bool(postponed) >= annotated


def test_an_older_python_gets_one_sentence() -> None:
    code = "import inspector.program as p; p.PYTHON = (99, 0)\n" + CODE.format(typed=["overview"], slow=SLOW)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.fullmatch(r"Python 99\.0 or newer is needed, not 3\.\d+: install a newer one\.\n", done.stderr)
