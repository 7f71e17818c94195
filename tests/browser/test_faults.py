"""The quicker ones of `python -m tools.faults`: real servers, real signals, a real full disk."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tools.faults.cases import CASES, FaultOutcome
from tools.faults.servers import serving

pytestmark = pytest.mark.faults
warm = partial(serving, module="tests.warm")  # servers that fork warm


@pytest.mark.parametrize("name", ["disk_full_while_receiving", "two_servers"])
def test_the_page_says_what_happened_and_the_next_request_works(browser: Browser, tmp_path: Path, name: str) -> None:
    expect_handled(CASES[name](browser, tmp_path, warm))


def expect_handled(outcome: FaultOutcome) -> None:
    """The store is whole, and the page told a person what happened."""
    assert outcome.whole.startswith("yes")
    assert outcome.said.endswith((".", "words)"))
    assert "/" not in outcome.said
    assert "Traceback" not in outcome.said
