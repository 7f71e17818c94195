"""The address: what it says is shown, whatever page was before; what is shown, it says."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import SLUGS, expect_address, expect_calm, expect_page, follow, go_to, sound

PHONE = 390
BESIDE = {"tour": "Questions", "report": "Report", "server": "Server"}  # pages that analyze nothing
TITLES_FIT = """() => [...document.querySelectorAll("[data-testid=stPlotlyChart]")].every((chart) =>
  chart.querySelector(".main-svg") &&
  [...chart.querySelectorAll(".gtitle, .gtitle-subtitle")].every((title) =>
    title.getBoundingClientRect().right <= chart.getBoundingClientRect().right))"""
GRAPH_SCROLLS = """phone => {
  const graph = document.querySelector(".st-key-sharing_graph, .st-key-portrait_place");
  return graph.scrollWidth >= 560 && graph.clientWidth < phone;
}"""
KING = "the king of [MASK]."
HOUSE = "a house of [MASK]."


def text(page: Page) -> str:
    return page.get_by_label("Text", exact=True).input_value()


def test_every_page_opens_by_its_link_on_a_phone(server: Server, open_browser: Callable[..., Page]) -> None:
    """Nothing scrolls sideways but the portrait and the graph of tensors, by themselves; no figure's title is cut."""
    page = open_browser(width=PHONE, height=800)
    with sound(page, server):
        page.goto(f"{server.url}/{SLUGS[-1]}?checkpoint=demo-gpt2")
        expect_page(page, SLUGS[-1], "demo-gpt2")
        for slug in SLUGS:
            follow(page, f"/{slug}?checkpoint=demo-gpt2")
            expect_page(page, slug, "demo-gpt2")
            expect_address(page, slug, checkpoint="demo-gpt2")
            # Streamlit puts the app's style sheet in with the other elements: it may come a moment later.
            page.wait_for_function(
                "phone => document.querySelector('[data-testid=stMain]').scrollWidth <= phone", arg=PHONE
            )
            expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
            page.wait_for_function(TITLES_FIT)
            if slug in {"overview", "sharing"}:
                page.wait_for_function(GRAPH_SCROLLS, arg=PHONE)
        for slug, title in BESIDE.items():
            follow(page, f"/{slug}?checkpoint=demo-gpt2")
            expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
            expect_calm(page)
            expect(page.get_by_test_id("stException")).to_have_count(0)
        page.get_by_test_id("stExpandSidebarButton").click()
        go_to(page, SLUGS[0])
        page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
        expect_page(page, SLUGS[0], "demo-gpt2")


def test_going_back_and_forward_shows_what_the_address_says(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens?text={KING}&pins=king")
    expect_page(page, "lens", "demo-bert")
    go_to(page, "masked_lm")
    expect_page(page, "masked_lm", "demo-bert")
    expect_address(page, "masked_lm", text=KING)
    assert text(page) == KING
    page.get_by_label("Text", exact=True).fill(HOUSE)
    expect_address(page, "masked_lm", text=HOUSE)
    expect_calm(page)
    page.go_back()  # each sentence that was typed is a step
    expect_address(page, "masked_lm", text=KING)
    expect(page.get_by_label("Text", exact=True)).to_have_value(KING)
    page.go_back()
    expect_page(page, "lens", "demo-bert")
    expect_address(page, "lens", text=KING, pins="king")
    expect(page.get_by_label("Text", exact=True)).to_have_value(KING)
    page.get_by_role("button", name="Options").click()
    expect(page.get_by_label("Pinned tokens", exact=True)).to_have_value("king")
    page.go_forward()
    expect_page(page, "masked_lm", "demo-bert")
    page.go_forward()
    expect_address(page, "masked_lm", text=HOUSE)
    expect(page.get_by_label("Text", exact=True)).to_have_value(HOUSE)


def test_a_stale_link_offers_the_demo_and_back_opens_the_checkpoint_before(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/sharing?checkpoint=upload:0123456789abcdef")
    expect(page.get_by_text("is no longer in the store")).to_be_visible()
    page.get_by_role("button", name="Open demo-bert").click()
    expect_page(page, "sharing", "demo-bert")
    expect(page.get_by_text("is no longer in the store")).to_have_count(0)
    expect(page).to_have_url(re.compile("checkpoint=demo-bert"))
    page.get_by_test_id("stSidebar").get_by_role("combobox", name="Checkpoint").click()
    page.get_by_role("option", name="demo-gpt2", exact=True).click()
    expect_page(page, "sharing", "demo-gpt2")
    expect(page).to_have_url(re.compile("checkpoint=demo-gpt2"))
    page.go_back()
    expect_page(page, "sharing", "demo-bert")
