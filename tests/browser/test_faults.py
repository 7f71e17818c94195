"""The quicker ones of `python -m tools.faults`: real servers, real signals, a real full disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tools.faults import servers
from tools.faults.cases import CASES, Outcome

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("name", ["kill_while_staging", "disk_full_while_receiving", "two_servers"])
def test_the_page_says_what_happened_and_the_next_request_works(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A case fails by itself where the store is not whole or the page says something else."""
    monkeypatch.setattr(servers, "MODULE", "tests.warm")
    expect_handled(CASES[name](browser, tmp_path))


def expect_handled(outcome: Outcome) -> None:
    """The store is whole, and the page told a person what happened."""
    assert outcome.whole.startswith("yes")
    assert outcome.said.endswith((".", "words)"))
    assert "/" not in outcome.said
    assert "Traceback" not in outcome.said
