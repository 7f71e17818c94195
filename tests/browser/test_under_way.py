"""Uploads that take a while: how much has arrived, and what their headers tell before the rest is here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import CDPSession, Page, expect

from inspector.demo import DEMOS
from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, go_to, metric

SLOW = 100_000  # bytes a second, of a file of 5 MB
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")


@contextmanager
def slowly(page: Page) -> Iterator[None]:
    """Send as over a slow line."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    _limit(session, SLOW)
    try:
        yield
    finally:
        _limit(session, -1)


def _limit(session: CDPSession, speed: int) -> None:
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": speed},
    )


def send(page: Page, *names: str) -> None:
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_text("Open your own").click()
    folder = DEMOS["demo-gpt2"].folder
    sidebar.locator("input[type=file]").set_input_files([str(folder / name) for name in names])


def look(page: Page) -> None:
    """Open what is known already."""
    page.get_by_test_id("stSidebar").get_by_role("button", name="See what is known already").click()
    expect_page(page, "overview", "GPT2LMHeadModel")


def test_headers_are_looked_at_while_the_numbers_come(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    sidebar = page.get_by_test_id("stSidebar")
    with slowly(page):
        send(page, *FILES)
        expect(sidebar.get_by_text(re.compile(r"Arriving: .* of 5\.3 MB"))).to_be_visible()
        expect(sidebar.get_by_text("GPT2LMHeadModel · 1.3M parameters · float32 · 52 tensors")).to_be_visible()
        expect_page(page, "overview", "demo-bert")  # nothing changes that was not asked for
        look(page)
        expect(page.get_by_text("The weights are still being uploaded.")).to_be_visible()
        expect(metric(page, "Parameters")).to_have_text("1.3M")
        expect(page.get_by_text("The fingerprint follows when all weights are here.")).to_be_visible()
        expect(page.get_by_role("button", name="Compute the SHA-256")).to_have_count(0)
        expect(page.get_by_text("This view can be shared, and asked for in a terminal, when")).to_be_visible()
        expect(page.get_by_text("copy the URL")).to_have_count(0)
        expect(sidebar.get_by_text("This page shows what is known already.")).to_be_visible()
        go_to(page, "sharing")
        expect(page.get_by_text("Input and output embeddings are tied: one tensor of")).to_be_visible()
        expect(page.get_by_text("are looked for when all weights are here")).to_be_visible()
        go_to(page, "training")  # which has fields of the same names
        expect(page.get_by_text("The worked example follows when all weights are here.")).to_be_visible()
        expect(page.get_by_label("Steps", exact=True)).to_have_value("1000")
        go_to(page, "lens")
        expect(page.get_by_text("The weights of GPT2LMHeadModel are still being uploaded")).to_be_visible()
        expect(page.locator(".js-plotly-plot")).to_have_count(0)
        link = page.url
    assert "arriving" in link  # what the page shows is opened when all of it is here
    expect_page(page, "lens", "GPT2LMHeadModel")
    expect(page).to_have_url(re.compile("checkpoint=upload"))
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    expect(sidebar.get_by_text("Arriving:")).to_have_count(0)

    page.goto("about:blank")
    page.goto(link)  # of nobody's upload any more
    expect(page.get_by_text("This is a link to an upload that was still arriving")).to_be_visible()


def test_an_upload_that_is_canceled_takes_its_preview_along(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    with slowly(page):
        send(page, *FILES)
        look(page)
        page.get_by_test_id("stSidebar").get_by_role("button", name="Cancel upload of model.safetensors").click()
        expect_page(page, "overview", "demo-bert")
    expect(page).to_have_url(re.compile("checkpoint=demo-bert"))
    expect_calm(page)
