"""A second checkpoint and a run: a link asks before it opens them, what is typed is not asked about."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_page, fill
from tests.browser.test_links_ask import QUESTION


def test_what_is_typed_is_not_asked_about(page: Page, asking_server: Server) -> None:
    page.goto(f"{asking_server.url}/compare?checkpoint=demo-gpt2")
    expect_page(page, "compare", "demo-gpt2")
    fill(page, "Second checkpoint", "path:ours")
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect(page.get_by_text(QUESTION)).to_have_count(0)


@pytest.mark.parametrize("link", ["compare?other=path:theirs", "snapshots?run=path:run"])
def test_a_second_checkpoint_and_a_run_ask_once(link: str, page: Page, asking_server: Server) -> None:
    page.goto(f"{asking_server.url}/{link}")
    expect(page.get_by_text(QUESTION)).to_be_visible()
    page.get_by_role("button", name="Open these files").click()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect(page.get_by_text(QUESTION)).to_have_count(0)
    page.reload()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect(page.get_by_text(QUESTION)).to_have_count(0)
