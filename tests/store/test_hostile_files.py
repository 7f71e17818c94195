"""Files that are packed, named or placed as no checkpoint's are, and formats of others."""

from __future__ import annotations

import pytest

from tests.store.hostile_trying import each, some, tried

KINDS = ("archives", "formats", "names", "places")


@pytest.mark.parametrize("name", each(*KINDS))
def test_each_is_handled(name, tmp_path):
    tried(name, tmp_path)


@pytest.mark.parametrize("name", some(*KINDS))
def test_a_report_is_written_or_refused(name, tmp_path):
    tried(name, tmp_path, report=True)
