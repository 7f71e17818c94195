"""A server that is killed, in `python -m tools.faults`."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.test_faults import expect_handled, warm
from tools.faults.cases import CASES

pytestmark = pytest.mark.faults


def test_an_upload_can_be_given_again(browser: Browser, tmp_path: Path) -> None:
    expect_handled(CASES["kill_while_staging"](browser, tmp_path, warm))
