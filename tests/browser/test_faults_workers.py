"""Workers that crash or run out of memory, in `python -m tools.faults`."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.test_faults import expect_handled
from tools.faults.cases import CASES
from tools.faults.servers import serving

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("name", ["worker_crashed", "out_of_memory"])
def test_a_worker_that_imports_torch_itself(browser: Browser, tmp_path: Path, name: str) -> None:
    """It is at work once the page shows progress, and its imports take the memory."""
    expect_handled(CASES[name](browser, tmp_path, serving))
