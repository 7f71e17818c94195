"""The page Embeddings: the map is searched and chosen from, and its computation is stopped."""

from __future__ import annotations

import re

import pandas as pd
from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, fill


def test_the_map_is_searched_clicked_and_chosen_from_and_umap_can_be_stopped(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/embeddings?dimensions=3")
    expect_page(page, "embeddings", "demo-bert")
    fill(page, "Find tokens", "city, king")
    expect(page.get_by_text("2 tokens found")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^Nearest to city \(id \d+\)"))).to_be_visible()
    expect(page).to_have_url(re.compile("token=city"))
    page.get_by_role("radio", name="king", exact=True).click()
    expect(page.get_by_text(re.compile(r"^Nearest to king \(id \d+\)"))).to_be_visible()
    fill(page, "Find tokens", "nosuchtoken")
    expect(page.get_by_text("No single token of demo-bert")).to_be_visible()
    expect(page.get_by_text("Median norm", exact=True)).to_be_visible()

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
    expect(page.get_by_text("15 true neighbors are still neighbors")).to_be_visible()
    expect(page.get_by_text("Stopped.")).to_have_count(0)
