"""Everything that a stranger can ask of a running server, and nothing that an answer may tell."""

from __future__ import annotations

import pytest

from tools.scan.__main__ import scan_own

pytestmark = pytest.mark.scan


def test_no_answer_tells_a_path_a_version_or_a_secret() -> None:
    watch = scan_own("tests.warm")
    assert watch.counted["answers"] > 1000
    assert list(watch.leaks.values()) == []
