"""What every test must do, check something, and what none may: reach into the product."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house import reading


@pytest.mark.parametrize("path", reading.TESTS, ids=lambda path: path.name)
def test_every_test_can_fail(path):
    """By an assertion, an expected error, or a helper that has one."""
    empty = [each.name for each in reading.tests(reading.parsed(path)) if not reading.checks(path, each.name)]
    assert empty == []


# Of every named tuple, whose methods begin with an underscore.
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}


def test_no_test_reaches_a_private_name_of_the_product():
    texts = (path.read_text("utf-8") for path in reading.PRODUCT)
    private = set().union(*map(reading.private_names, texts)) - NAMED_TUPLE
    reached = {
        f"{path.relative_to(reading.ROOT)}: {name}"
        for path in (reading.ROOT / "tests").rglob("*.py")
        if private & set(re.findall(r"_\w+", path.read_text("utf-8")))
        for name in reading.reached(reading.parsed(path)) & private
    }
    assert len(private) > 1_000
    assert reached == set()


# Take out what has become a parameter, and add nothing. numba has its setting once in a process.
STILL_PATCHED: dict[str, set[str]] = {"analyses/vocabulary_map/test_umap_learn.py": {"CACHE_DIR"}}


def test_constants_are_parameters_where_a_test_needs_another_value():
    found = {
        str(path.relative_to(reading.ROOT / "tests")): names
        for path in (reading.ROOT / "tests").rglob("*.py")
        if (names := reading.patched_constants(reading.parsed(path)))
    }
    assert found == STILL_PATCHED


MADE_UP = """
from inspector.lens import lens as ask
from tests.models import alike

def helper(value):
    assert value

def passed_on(value):
    helper(value)

def test_by_a_helper():
    passed_on(ask())

def test_by_another_file():
    alike.same(1, 1, leaving=())

def test_that_only_runs():
    ask()
"""

REACHING = """
from inspector.lens import _rows, lens

class Stand:
    def __init__(self):
        self._mine = lens()._loaded

def test_lens(monkeypatch):
    monkeypatch.setattr(lens, "_pool", None)
    monkeypatch.setattr("inspector.lens._kept", None)
    monkeypatch.setattr(lens, "MOST_ROWS", 3)
    getattr(lens, "__doc__")
"""


def test_a_test_that_reaches_in_is_seen():
    assert reading.reached(ast.parse(REACHING)) == {"_rows", "_loaded", "_pool", "_kept"}
    assert reading.private_names(REACHING) == {"_mine"}
    assert reading.patched_constants(ast.parse(REACHING)) == {"MOST_ROWS"}


def test_a_test_that_checks_nothing_is_seen():
    tree = ast.parse(MADE_UP)
    assert {each.name: reading.checks_in(tree, each.name) for each in reading.tests(tree)} == {
        "test_by_a_helper": True,
        "test_by_another_file": True,
        "test_that_only_runs": False,
    }
    assert reading.users_of(tree, "helper") == {"passed_on", "test_by_a_helper"}
