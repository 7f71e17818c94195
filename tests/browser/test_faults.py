"""The quicker ones of `python -m tools.faults`: real servers, real signals, a real full disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tools.faults import servers
from tools.faults.cases import CASES, Outcome

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("name", ["disk_full_while_receiving", "two_servers"])
def test_the_page_says_what_happened_and_the_next_request_works(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    provoke(name, browser, tmp_path, monkeypatch)


def provoke(name: str, browser: Browser, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a case happen to servers that fork warm; it fails by itself where the store or the page is not as said."""
    monkeypatch.setattr(servers, "MODULE", "tests.warm")
    expect_handled(CASES[name](browser, folder))


def expect_handled(outcome: Outcome) -> None:
    """The store is whole, and the page told a person what happened."""
    assert outcome.whole.startswith("yes")
    assert outcome.said.endswith((".", "words)"))
    assert "/" not in outcome.said
    assert "Traceback" not in outcome.said
