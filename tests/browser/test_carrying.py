"""What goes along from page to page, and what stays behind."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import PAGE_LINKS, address, expect_address, expect_calm, expect_page, fill, go_to

KING = "the king of [MASK]."
HOUSE = "a house of [MASK]."


def test_a_text_of_ones_own_comes_along_and_stands_in_the_address(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens")
    expect_page(page, "lens", "demo-bert")
    fill(page, "Text", KING, key="Control+Enter")
    expect_address(page, "lens", text=KING)
    go_to(page, "sharing")  # has no text
    expect_page(page, "sharing", "demo-bert")
    go_to(page, "masked_lm")
    expect_page(page, "masked_lm", "demo-bert")
    expect_address(page, "masked_lm", text=KING)
    link = page.url
    page.goto("about:blank")
    page.goto(link)  # as a colleague would
    expect_page(page, "masked_lm", "demo-bert")
    expect(page.get_by_label("Text", exact=True)).to_have_value(KING)


def test_a_page_has_its_own_view_again_after_two_others(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens?text={KING}&pins=queen&layer=2&tab=Geometry")
    expect_page(page, "lens", "demo-bert")
    for slug in ("sharing", "checks"):
        go_to(page, slug)
        expect_page(page, slug, "demo-bert")
    assert not address(page)[1].keys() & {"pins", "layer"}
    go_to(page, "lens")
    expect_page(page, "lens", "demo-bert")
    expect_address(page, "lens", text=KING, pins="queen", layer="2", tab="Geometry")
    expect(page.get_by_role("tab", name="Geometry")).to_have_attribute("aria-selected", "true")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    expect_page(page, "lens", "demo-bert")
    expect_address(page, "lens", pins="queen", layer="2", tab="Geometry")


def test_what_the_next_page_cannot_take_stays_behind(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/masked_lm?k=500&text={KING}")
    expect_page(page, "masked_lm", "demo-bert")
    go_to(page, "lens")
    expect_page(page, "lens", "demo-bert")
    expect(page.get_by_test_id("stAlert")).to_have_count(0)
    assert "k" not in address(page)[1]
    page.go_back()
    expect_page(page, "masked_lm", "demo-bert")
    expect_address(page, "masked_lm", k="500", text=KING)


def test_what_means_something_else_elsewhere_does_not_go_along_nor_into_the_view_of_a_question(
    page: Page, server: Server
) -> None:
    page.goto(f"{server.url}/lens?text={KING}&k=7&second={HOUSE}&shade=entropy")
    expect_page(page, "lens", "demo-bert")
    go_to(page, "embeddings")
    expect_page(page, "embeddings", "demo-bert")
    # `k` means the same there and may go along; what colors the lens does not.
    _, parameters = address(page)
    assert "color" not in parameters
    page.go_back()
    expect_page(page, "lens", "demo-bert")
    expect_calm(page)
    expect_address(page, "lens", k="7", shade="entropy")

    page.locator(PAGE_LINKS).get_by_role("link", name="Questions").click()
    page.get_by_role("button", name="At which layer does the model know").click()
    expect_page(page, "lens", "demo-bert")
    expect_address(page, "lens", pins="year", shade="rank of a pinned token")
    assert not address(page)[1].keys() & {"k", "second"}
    page.locator(PAGE_LINKS).get_by_role("link", name="Questions").click()
    page.get_by_role("button", name="Why is GPT-2's lm_head").click()
    expect_page(page, "sharing", "demo-gpt2")
    expect_address(page, "sharing", checkpoint="demo-gpt2")


def test_a_tab_of_one_page_opens_none_of_another_and_is_open_on_the_way_back(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/sharing?checkpoint=demo-bert&tab=Why")
    expect_page(page, "sharing", "demo-bert")
    go_to(page, "padding")
    expect_page(page, "padding", "demo-bert")
    expect(page.get_by_role("tab", name="Experiments")).to_have_attribute("aria-selected", "true")
    assert "tab" not in address(page)[1]
    go_to(page, "sharing")
    expect_page(page, "sharing", "demo-bert")
    expect(page.get_by_role("tab", name="Why")).to_have_attribute("aria-selected", "true")
    expect_address(page, "sharing", tab="Why")
