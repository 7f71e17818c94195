"""The Task heads page in a real browser: an edit, the link, another head, a sampled text."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, fill


def test_an_edited_second_sentence_changes_the_answer_and_the_link(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/heads")
    expect_page(page, "heads", "demo-bert")
    expect(page.get_by_role("row", name="Class BertForNextSentencePrediction")).to_be_visible()
    headline = page.get_by_text(re.compile("the second text .* the probability is"))
    before = headline.inner_text()
    fill(page, "Second sentence: does it follow?", "it has leaves.", key="Control+Enter")
    expect(page).to_have_url(re.compile("pair=it\\+has\\+leaves|pair=it%20has%20leaves"))
    expect(headline).not_to_have_text(before)
    expect_calm(page)
    after = headline.inner_text()
    page.reload()
    expect(headline).to_have_text(after)
    page.get_by_role("combobox", name="Head").click()
    page.get_by_role("option", name="masked_lm").click()
    expect(page.get_by_role("row", name="Class BertForMaskedLM")).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)
