"""The page about the model's classes, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, fill


def test_classes_from_the_family_tree_to_the_output(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/classes?checkpoint=demo-bert&module=bert.pooler")
    expect_page(page, "classes", "demo-bert")
    tree = page.locator(".js-plotly-plot").first
    expect(tree.get_by_text("BertForQuestionAnswering")).to_be_visible()
    expect(page.get_by_text("4 of 9 classes of its family find their weights in the file")).to_be_visible()
    expect(page.get_by_text("× BertLayer, all alike")).to_be_visible()
    expect(page.get_by_role("row", name="Class BertPooler")).to_be_visible()
    page.get_by_role("tab", name="Output", exact=True).click()
    expect(page.get_by_text("It returns BertForPreTrainingOutput")).to_be_visible()
    expect_calm(page)  # the closed tab's name leaves the address last
    fill(page, "Text", "a dog.", key="Control+Enter")
    expect(page.get_by_text("for 5 tokens")).to_be_visible()
    expect_calm(page)
    expect(page).to_have_url(re.compile("text=a"))
    expect(page).to_have_url(re.compile("tab=Output"))
    row = page.get_by_role("row", name=re.compile("^prediction_logits"))
    expect(row).to_contain_text("positions 5 × vocab 5,120")
