"""The padding page in a real browser: one's own sentences, a link, a checkpoint without padding."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, fill, follow, sound

SENTENCES = "Sentences, one per line"


def test_ones_own_sentences_a_file_and_a_tokenizer_without_padding(
    page: Page, server: Server, open_browser: Callable[..., Page]
) -> None:
    with sound(page, server):  # pages without a download are asked for their policy on a phone
        page.goto(f"{server.url}/padding?checkpoint=demo-bert")
        expect_page(page, "padding", "demo-bert")
        with page.expect_download() as download:
            page.get_by_role("button", name="CSV", exact=True).first.click()
        assert download.value.path().stat().st_size > 0
    ones_own_sentences_are_measured_and_stand_in_the_link(page, open_browser())
    a_tokenizer_without_padding_is_explained(page)


def ones_own_sentences_are_measured_and_stand_in_the_link(page: Page, other: Page) -> None:
    expect(page.get_by_text("the look-up path is blocked by padding_idx")).to_be_visible()
    expect(page.locator(".js-plotly-plot .barlayer .point")).to_have_count(4)
    expect(page.locator(".js-plotly-plot").get_by_text("exactly 0")).to_have_count(2)
    text = "a cat.\na small animal with a short tail."
    fill(page, SENTENCES, text, key="Control+Enter")
    page.get_by_role("tab", name="Averages").click()
    expect(page.get_by_text("2 sentences padded together")).to_be_visible()
    page.get_by_role("tab", name="Experiments").click()
    expect(page).to_have_url(re.compile("text="))
    expect_calm(page)
    said = page.get_by_role("listitem").filter(has_text="Through the softmax").inner_text()

    other.goto(page.url)
    expect_page(other, "padding", "demo-bert")
    expect(other.get_by_label(SENTENCES, exact=True)).to_have_value(text)
    expect(other.get_by_role("listitem").filter(has_text="Through the softmax")).to_have_text(said)


def a_tokenizer_without_padding_is_explained(page: Page) -> None:
    follow(page, "/padding?checkpoint=demo-gpt2")
    expect_page(page, "padding", "demo-gpt2")
    expect(page.get_by_text("There is no padding vector")).to_be_visible()
    expect(page.get_by_text("in place of padding")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile(r"^Norm \d\.\d{4}, the median row"))).to_be_visible()
