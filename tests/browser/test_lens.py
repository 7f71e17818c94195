"""The vocabulary lens in a real browser: pins, colors, links."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, fill


def test_pinned_tokens_are_followed_and_color_the_map(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens")
    expect_page(page, "lens", "demo-bert")
    fill(page, "Pinned tokens", "spain, river")
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text("Pinned tokens: CSV")).to_be_visible()
    expect(page).to_have_url(re.compile(r"pins=spain(%2C|,)"))
    page.get_by_label("Color by").click()
    page.get_by_role("option", name="rank of a pinned token").click()
    expect(main.get_by_text("colored by rank of spain")).to_be_visible()
    page.reload()
    expect_page(page, "lens", "demo-bert")
    expect(main.get_by_text("colored by rank of spain")).to_be_visible()
    expect_calm(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name=re.compile("^Download as SVG: ")).first.click()
    assert "demo-bert" in waiting.value.suggested_filename


def test_a_link_opens_rung_and_cell(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens?checkpoint=demo-gpt2&rung=cosine&layer=2&position=1")
    expect_page(page, "lens", "demo-gpt2")
    expect(page.get_by_role("heading", name="Layer 2, position 1")).to_be_visible()
    expect(page.get_by_text("by cosine, colored by cosine")).to_be_visible()
    expect(page.get_by_text("--layer=2 --position=1")).to_be_visible()
