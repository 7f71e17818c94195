"""Two tiers of tests: `make test` leaves out marked kinds, `make check` runs all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import MARKED, SECONDS

ROOT = Path(__file__).parents[2]
MARKS = {
    line.partition(":")[0]
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]["markers"]
}
KNOWN = {"parametrize", "skipif", "usefixtures", "browser_context_args"}
SOURCES = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]


def test_every_marker_is_known_and_every_tier_has_tests():
    used = {mark for path in SOURCES for mark in re.findall(r"pytest\.mark\.(\w+)", path.read_text("utf-8"))}
    assert used - KNOWN == MARKS


def test_no_tier_is_empty(pytestconfig: pytest.Config):
    """Counted where all tests are collected, as `make test` and `make check` do."""
    counted = pytestconfig.stash[MARKED]
    if pytestconfig.args == pytestconfig.getini("testpaths"):
        assert [mark for mark in sorted(MARKS) if not counted[mark]] == []


def test_nothing_is_skipped_in_ci(tmp_path: Path):
    (tmp_path / "test_one.py").write_text("import pytest\n\n\ndef test_one():\n    pytest.skip('no GPU')\n", "utf-8")
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_runtest_makereport\n", "utf-8")
    for ci, status in (("", 0), ("true", 1)):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "."]
        environment = os.environ | {"CI": ci, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout
    assert "was skipped, in CI" in done.stdout


def test_make_test_leaves_out_what_the_markers_name():
    daily = re.search(r"DAILY := not \((.*)\)", (ROOT / "Makefile").read_text("utf-8"))
    assert daily
    assert set(daily.group(1).split(" or ")) == MARKS


def test_files_and_folders_known_to_be_slow_are_there():
    """A file that was moved would come last again."""
    assert SECONDS
    assert [name for name in SECONDS if not (ROOT / name).exists()] == []
