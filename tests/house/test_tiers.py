"""Two tiers of tests: `make test` leaves out marked kinds, `make check` runs all."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.conftest import SECONDS

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


def test_make_test_leaves_out_what_the_markers_name():
    daily = re.search(r"DAILY := not \((.*)\)", (ROOT / "Makefile").read_text("utf-8"))
    assert daily
    assert set(daily.group(1).split(" or ")) == MARKS


def test_files_and_folders_known_to_be_slow_are_there():
    """A file that was moved would come last again."""
    assert SECONDS
    assert [name for name in SECONDS if not (ROOT / name).exists()] == []
