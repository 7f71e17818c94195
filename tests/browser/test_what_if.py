"""What if, in a real browser: choose a change, see which tie breaks, share the view."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_page


def test_a_clone_is_no_longer_one_tensor_and_the_link_says_so(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/sharing")
    expect_page(page, "sharing", "demo-bert")
    page.get_by_role("tab", name="What if").click()
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text("whatif demo-bert").first).to_be_visible()  # nothing moves any more
    page.get_by_role("radio", name="clone").click()
    expect(main.get_by_text("tied once more")).to_be_visible()
    expect(main.get_by_text("--change=clone").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"/sharing\?(?=.*change=clone)(?=.*tab=What(%20|\+)if)"))
    page.reload()
    expect_page(page, "sharing", "demo-bert")
    expect(main.get_by_text("tied once more")).to_be_visible()
    expect(page.get_by_role("radio", name="clone")).to_be_checked()
