"""The bundled checkpoint, in a real browser: first paint, every page, links, themes."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import pandas as pd
from playwright.sync_api import BrowserContext, Page, expect

from inspector.demo import DEMOS
from serving.trial import Server
from tests.browser.looking import SLUGS, click_mark, expect_calm, expect_page, fill, go_to, metric


def test_a_demo_is_open_at_first_paint_and_its_pages_answer(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    expect(page).to_have_title(re.compile("Checkpoint Inspector"))
    expect(metric(page, "Parameters")).to_have_text(re.compile(r"^\d\.\dM$"))
    expect(page.get_by_role("row", name="Masked LM").get_by_text("present")).to_be_visible()
    expect(page.get_by_role("row", name="Causal LM").get_by_text("absent")).to_be_visible()
    icon = page.locator("link[rel='shortcut icon'], link[rel=icon]").first
    assert (icon.get_attribute("href") or "").startswith(("data:", server.url, "/", "./"))
    go_to(page, "sharing")
    expect_page(page, "sharing", "demo-bert")
    expect(metric(page, "Shared groups")).to_have_text("2")
    expect(page.get_by_text("Why is cls.predictions.decoder.weight not among")).to_be_visible()
    go_to(page, "embeddings")
    expect_page(page, "embeddings", "demo-bert")
    expect(page.get_by_text("Why is [PAD] not zero?")).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    go_to(page, "lens")
    expect_page(page, "lens", "demo-bert")
    expect(page.get_by_text("largest error against the model's logits").first).to_contain_text("within")
    points = page.locator(".js-plotly-plot .barlayer .point")
    expect(points.first).to_be_visible()
    click_mark(points.first)
    expect(page.get_by_role("heading", name="Layer embeddings, position 0")).to_be_visible()
    expect(page).to_have_url(re.compile("layer=0"))
    expect(page).to_have_url(re.compile("position=0"))
    go_to(page, "masked_lm")
    expect_page(page, "masked_lm", "demo-bert")
    expect(metric(page, "Device")).not_to_be_empty()
    expect(metric(page, "Forward pass")).to_have_text(re.compile(r"^[\d.]+ ms$"))


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
        expect(page.get_by_test_id("stSidebarNavLink")).to_have_count(len(SLUGS) + 3)
        expect(page.get_by_test_id("stSidebar").get_by_text(DEMOS["demo-gpt2"].description)).to_be_visible()
    asked = pages["masked_lm"]  # a causal model is asked how plausible the text is
    expect(metric(asked, "Perplexity")).to_have_text(re.compile(r"^[0-9.]+$"))
    expect(asked.get_by_text("How surprising is each token?", exact=False).first).to_be_visible()
    expect(asked.get_by_text("has no context and is not judged")).to_be_visible()


def test_a_mask_an_example_and_a_text_are_taken_and_their_link_opens_the_same_view(
    page: Page, server: Server, open_browser: Callable[..., Page]
) -> None:
    page.goto(f"{server.url}/masked_lm?checkpoint=demo-bert")
    expect_page(page, "masked_lm", "demo-bert")
    expect(metric(page, "Masks")).to_have_text("1")
    page.get_by_role("button", name="Insert [MASK]").click()
    expect(metric(page, "Masks")).to_have_text("2")
    expect(page.get_by_role("heading", name="All masks together")).to_be_visible()

    example = DEMOS["demo-bert"].examples[1]
    page.get_by_role("radio", name=example).click()
    expect(page.get_by_label("Text", exact=True)).to_have_value(example)
    expect(page).to_have_url(re.compile(re.escape(quote(example.split()[-1].rstrip(".")))))
    expect(metric(page, "Masks")).to_have_text("1")

    text = "a small [MASK] with [MASK] and a short beak."
    fill(page, "Text", text, key="Control+Enter")
    expect(metric(page, "Masks")).to_have_text("2")
    expect(page).to_have_url(re.compile("beak"))
    expect_calm(page)
    tokens = page.get_by_test_id("stExpander").filter(has_text=re.compile("^Table|Table:")).first
    said = tokens.inner_text()

    other = open_browser()
    other.goto(page.url)
    expect_page(other, "masked_lm", "demo-bert")
    expect(other.get_by_label("Text", exact=True)).to_have_value(text)
    expect(metric(other, "Masks")).to_have_text("2")
    same = other.get_by_test_id("stExpander").filter(has_text=re.compile("^Table|Table:")).first
    expect(same).to_contain_text(said.strip().splitlines()[-1])


def test_the_map_is_searched_clicked_and_chosen_from_and_umap_can_be_stopped(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/embeddings?dimensions=3")
    expect_page(page, "embeddings", "demo-bert")
    fill(page, "Find tokens", "city, king")
    expect(page.get_by_text("2 tokens found")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^city · id \d+"))).to_be_visible()
    expect(page).to_have_url(re.compile("token=city"))
    page.get_by_role("radio", name="king", exact=True).click()
    expect(page.get_by_text(re.compile(r"^king · id \d+"))).to_be_visible()
    fill(page, "Find tokens", "nosuchtoken")
    expect(page.get_by_text("No single token of demo-bert")).to_be_visible()
    expect(page.get_by_text("Why is [PAD] not zero?")).to_be_visible()

    canvas = page.locator(".stage canvas")
    expect(canvas).to_have_attribute("data-drawn", re.compile(r"\d"))
    expect_calm(page)
    canvas.focus()
    page.keyboard.press("Enter")  # the token nearest to the center
    expect(page).to_have_url(re.compile(r"row=\d+"))
    expect(page.get_by_text("Nearest in all 160 dimensions by cosine")).to_be_visible()
    canvas.focus()
    page.keyboard.press("a")
    expect(page.get_by_role("heading", name="5,120 chosen tokens")).to_be_visible()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Chosen: Parquet").click()
    assert len(pd.read_parquet(waiting.value.path())) == 5120
    page.get_by_title("Show or hide: under-trained").click()
    expect(page).to_have_url(re.compile("hide=under-trained"))
    canvas.focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="5,120 chosen tokens")).to_have_count(0)
    expect(page).to_have_url(re.compile("row=none"))
    expect_calm(page)

    with server.hold():  # however fast the machine is
        page.goto(f"{server.url}/embeddings?method=umap&seed=7")
        page.get_by_role("button", name="Cancel", exact=True).click()
        expect(page.get_by_text("Stopped.")).to_be_visible()
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text("5,120 rows of")).to_be_visible()
    expect(page.get_by_text("Stopped.")).to_have_count(0)


def test_a_stale_link_offers_the_demo_and_back_opens_the_checkpoint_before(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/sharing?checkpoint=upload:0123456789abcdef")
    expect(page.get_by_text("is no longer in the store")).to_be_visible()
    page.get_by_role("button", name="Open demo-bert").click()
    expect_page(page, "sharing", "demo-bert")
    expect(page.get_by_text("is no longer in the store")).to_have_count(0)
    expect(page).to_have_url(re.compile("checkpoint=demo-bert"))
    page.get_by_test_id("stSidebar").get_by_role("combobox", name="Checkpoint").click()
    page.get_by_role("option", name="demo-gpt2").click()
    expect_page(page, "sharing", "demo-gpt2")
    expect(page).to_have_url(re.compile("checkpoint=demo-gpt2"))
    page.go_back()
    expect_page(page, "sharing", "demo-bert")
