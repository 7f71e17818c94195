"""What every test must do: check something."""

from __future__ import annotations

import ast

import pytest

from tests.house import reading


@pytest.mark.parametrize("path", reading.TESTS, ids=lambda path: path.name)
def test_every_test_can_fail(path):
    """By an assertion, an expected error, or a helper that has one."""
    empty = [each.name for each in reading.tests(reading.parsed(path)) if not reading.checks(path, each.name)]
    assert empty == []


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


def test_a_test_that_checks_nothing_is_seen():
    tree = ast.parse(MADE_UP)
    assert {each.name: reading.checks_in(tree, each.name) for each in reading.tests(tree)} == {
        "test_by_a_helper": True,
        "test_by_another_file": True,
        "test_that_only_runs": False,
    }
    assert reading.users_of(tree, "helper") == {"passed_on", "test_by_a_helper"}
