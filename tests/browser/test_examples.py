"""Examples, masks and texts of one's own on the page Masked LM."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

from playwright.sync_api import Page, expect

from inspector.demo import DEMOS
from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_masks, expect_page, fill

HEADLINE = re.compile("^The 2 masks together are most likely")


def test_a_mask_an_example_and_a_text_are_taken_and_their_link_opens_the_same_view(
    page: Page, server: Server, open_browser: Callable[..., Page]
) -> None:
    page.goto(f"{server.url}/masked_lm?checkpoint=demo-bert")
    expect_page(page, "masked_lm", "demo-bert")
    expect_masks(page, 1)
    page.get_by_role("button", name="Insert [MASK]").click()
    expect_masks(page, 2)
    expect(page.get_by_text("All masks together")).to_be_visible()

    example = DEMOS["demo-bert"].examples[1]
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("radio", name=example).click()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Text", exact=True)).to_have_value(example)
    expect(page).to_have_url(re.compile(re.escape(quote(example.split()[-1].rstrip(".")))))
    expect_masks(page, 1)

    text = "a small [MASK] with [MASK] and a short beak."
    fill(page, "Text", text, key="Control+Enter")
    expect_masks(page, 2)
    expect(page).to_have_url(re.compile("beak"))
    expect_calm(page)
    said = page.get_by_text(HEADLINE).inner_text()

    other = open_browser()
    other.goto(page.url)
    expect_page(other, "masked_lm", "demo-bert")
    expect(other.get_by_label("Text", exact=True)).to_have_value(text)
    expect_masks(other, 2)
    expect(other.get_by_text(HEADLINE)).to_have_text(said)
