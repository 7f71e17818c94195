"""The texts of the vocabulary lens in a real browser: two of them, a long one, one that is too long."""

from __future__ import annotations

import re
from urllib.parse import quote

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page

FRAME = ".st-key-heatmap_frame"
LONG = "the capital and largest city of a country that lies on a river " * 9


def holds(page: Page, selector: str, condition: str) -> None:
    """Wait until a condition holds of an element, looked up anew each time: Streamlit may draw it again."""
    page.wait_for_function(f"(found => found && ({condition})(found))(document.querySelector({selector!r}))")


def test_two_texts_stand_one_below_the_other(page: Page, server: Server) -> None:
    second = "the capital and largest city of italy."
    page.goto(f"{server.url}/lens?text={quote('the capital and largest city of [MASK].')}"
              f"&second={quote(second)}")  # fmt: skip
    expect_page(page, "lens", "demo-bert")
    expect(page.get_by_text("For comparison:")).to_be_visible()
    expect(page.locator(".js-plotly-plot").filter(has_text="colored by probability")).to_have_count(2)
    expect_calm(page)


def test_a_long_text_is_scrolled_with_its_tokens_and_fits_in_one_view(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens?text={quote(LONG)}&cells=with+tokens")
    expect_page(page, "lens", "demo-bert")
    frame = page.locator(FRAME)
    expect(frame.get_by_text("capital").first).to_be_visible()
    holds(page, FRAME, "box => box.querySelector('.js-plotly-plot')?.clientHeight > box.clientHeight")
    page.get_by_role("button", name="Options").click()
    page.get_by_role("combobox", name="Cell text").click()
    page.get_by_role("option", name="all in one view").click()
    expect(page).to_have_url(re.compile("cells=all"))
    expect(frame.locator(".js-plotly-plot")).to_have_count(1)
    expect(frame.locator(".xtitle").filter(has_text="position")).to_be_visible()  # on its side
    holds(page, FRAME, "box => box.scrollWidth <= box.clientWidth")


def test_a_text_that_is_too_long_is_said_once(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens?text={quote(LONG * 2)}&pins=spain")
    expect(page.get_by_test_id("stAlert")).to_have_count(1)
    expect(page.get_by_text("demo-bert takes at most 128: shorten it.")).to_be_visible()
