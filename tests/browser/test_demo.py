"""The bundled checkpoint, in a real browser: first paint, every page, links, themes."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import BrowserContext, Page, expect

from inspector.demo import DEMOS
from inspector.serving.trial import Server
from tests.browser.looking import PAGE_LINKS, SLUGS, click_mark, expect_page, go_to, metric


def test_a_demo_is_open_at_first_paint_and_its_pages_answer(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    expect(page).to_have_title(re.compile("Checkpoint Inspector"))
    expect(metric(page, "Parameters")).to_have_text(re.compile(r"^\d\.\dM$"))
    badges = page.get_by_test_id("stMain").locator(".stMarkdownBadge")
    expect(badges.filter(has_text="Masked LM")).not_to_contain_text("absent")
    expect(badges.filter(has_text="Causal LM: absent")).to_be_visible()
    icon = page.locator("link[rel='shortcut icon'], link[rel=icon]").first
    assert (icon.get_attribute("href") or "").startswith(("data:", server.url, "/", "./"))
    click_mark(page.locator(".st-key-portrait_place .barlayer .point").first)
    expect(page.get_by_role("row", name="Numbers read")).to_contain_text("all 20,480")  # of the position embeddings
    expect(page.get_by_text("Values, demo-bert")).to_be_visible()
    go_to(page, "sharing")
    expect_page(page, "sharing", "demo-bert")
    expect(page.get_by_text("Input and output embeddings are tied: one tensor of 5,120 × 160")).to_be_visible()
    page.get_by_role("tab", name="Why").click()
    expect(page.get_by_text("Why is cls.predictions.decoder.weight not among")).to_be_visible()
    go_to(page, "embeddings")
    expect_page(page, "embeddings", "demo-bert")
    expect(page.get_by_role("tab", name="Special tokens")).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    go_to(page, "lens")
    expect_page(page, "lens", "demo-bert")
    expect(page.get_by_text("the largest difference from its logits is").first).to_contain_text("within")
    points = page.locator(".js-plotly-plot .barlayer .point")
    expect(points.first).to_be_visible()
    click_mark(points.first)
    expect(page.get_by_role("heading", name="Layer embeddings, position 0")).to_be_visible()
    expect(page).to_have_url(re.compile("layer=0"))
    expect(page).to_have_url(re.compile("position=0"))
    go_to(page, "masked_lm")
    expect_page(page, "masked_lm", "demo-bert")
    expect(page.get_by_text(re.compile(r"^Forward pass: [\d.]+ ms on "))).to_be_visible()


def test_deep_links_open_on_a_server_that_has_opened_nothing_yet(
    context: BrowserContext, watch: Callable[[Page], Page], start_server: Callable[..., Server]
) -> None:
    fresh = start_server()
    pages: dict[str, Page] = {}
    with fresh.hold():  # until each has been asked for
        for slug in ("overview", "sharing", "masked_lm", "checks"):
            pages[slug] = watch(context.new_page())
            pages[slug].set_viewport_size({"width": 1400, "height": 1000})
            pages[slug].goto(f"{fresh.url}/{slug}?checkpoint=demo-gpt2")
            expect(pages[slug].get_by_role("button", name="Cancel", exact=True)).to_be_visible()
    for slug, page in pages.items():
        page.bring_to_front()
        expect_page(page, slug, "demo-gpt2")
        # The questions and the server have pages beside those of the catalog.
        expect(page.locator(PAGE_LINKS).get_by_role("link")).to_have_count(len(SLUGS) + 3)
        expect(page.get_by_test_id("stSidebar").get_by_text(DEMOS["demo-gpt2"].description)).to_be_visible()
    asked = pages["masked_lm"]  # a causal model is asked how plausible the text is
    expect(asked.get_by_text(re.compile(r"^The text has a perplexity of [0-9.]+;"))).to_be_visible()
    expect(asked.get_by_text("How surprising is each token?", exact=False).first).to_be_visible()
    expect(asked.get_by_text("has no context and is not judged")).to_be_visible()
