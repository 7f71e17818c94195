"""The vocabulary lens in a real browser: pins, colors, links."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, fill, save_figure


def test_pinned_tokens_are_followed_and_color_the_map(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens")
    expect_page(page, "lens", "demo-bert")
    page.get_by_role("button", name="Options").click()
    fill(page, "Pinned tokens", "spain, river")
    page.keyboard.press("Escape")
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text("Pinned tokens over layers, demo-bert")).to_be_visible()
    expect(page).to_have_url(re.compile(r"pins=spain(%2C|,)"))
    page.get_by_label("Color by").click()
    page.get_by_role("option", name="rank of a pinned token").click()
    expect(main.get_by_text("colored by rank of spain")).to_be_visible()
    page.reload()
    expect_page(page, "lens", "demo-bert")
    expect(main.get_by_text("colored by rank of spain")).to_be_visible()
    expect_calm(page)
    assert "demo-bert" in save_figure(page, "SVG", "Top token of demo-bert").suggested_filename
    ranks = Path(save_figure(page, "CSV", "Token ranks").path()).read_text("utf-8-sig").splitlines()
    assert ranks[0] == 'series,head step,"rank, 1 = best"'
    assert {line.partition(",")[0] for line in ranks[1:]} >= {"spain", "river"}


def test_a_link_opens_rung_and_cell(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens?checkpoint=demo-gpt2&rung=cosine&layer=2&position=1")
    expect_page(page, "lens", "demo-gpt2")
    expect(page.get_by_role("heading", name="Layer 2, position 1")).to_be_visible()
    expect(page.get_by_text("by cosine, colored by cosine")).to_be_visible()
    page.get_by_text("Share this view").click()
    expect(page.get_by_text("--layer=2 --position=1")).to_be_visible()


def test_a_closed_tab_is_opened_by_a_click_or_its_address(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens?tab=Why")
    expect_page(page, "lens", "demo-bert")
    why = page.get_by_text("Why does tying make sense?")
    expect(why).to_be_visible()
    page.get_by_role("tab", name="Two texts").click()
    expect(page).to_have_url(re.compile("tab=Two(%20|\\+)texts"))
    fill(page, "Second text", "the capital of [MASK].")
    expect(page.get_by_text("For comparison:")).to_be_visible()
    expect(why).to_have_count(0)
    page.reload()
    expect(page.get_by_text("For comparison:")).to_be_visible()
    expect(page.get_by_role("tab", name="Two texts")).to_have_attribute("aria-selected", "true")
