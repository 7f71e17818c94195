"""The quicker ones of `python -m tools.faults`: real servers, real signals, a real full disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tools.faults import servers
from tools.faults.cases import CASES

pytestmark = pytest.mark.faults

QUICK = ("kill_while_staging", "disk_full_while_receiving", "two_servers", "worker_crashed", "out_of_memory")


# A worker that is at work once the page shows progress; one that imports torch itself, which takes the memory.
COLD = ("worker_crashed", "out_of_memory")


@pytest.mark.parametrize("name", QUICK)
def test_the_page_says_what_happened_and_the_next_request_works(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A case fails by itself where the store is not whole or the page says something else."""
    if name not in COLD:
        monkeypatch.setattr(servers, "MODULE", "tests.warm")
    outcome = CASES[name](browser, tmp_path)
    assert outcome.whole.startswith("yes")
    assert outcome.said.endswith((".", "words)"))
    assert "/" not in outcome.said
    assert "Traceback" not in outcome.said
