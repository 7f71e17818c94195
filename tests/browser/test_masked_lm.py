"""The masked-LM page in a real browser: typing, clicking, the keyboard, the link."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_masks, expect_page, follow

PERCENT = re.compile(r"[\d.]+ %")


def field(page: Page) -> Locator:
    return page.get_by_label("Text", exact=True)


def chip(page: Page, token: str) -> Locator:
    return page.locator(".chip").filter(has=page.get_by_text(token, exact=True)).first


def open_link(page: Page, **query: str) -> None:
    follow(page, "/masked_lm?" + "&".join(f"{name}={value}" for name, value in query.items()))
    expect(field(page)).to_have_value(query["text"])
    expect(chip(page, "france")).to_have_attribute("aria-pressed", str("masks" in query).lower())
    expect_page(page, "masked_lm", "demo-bert")


def test_typing_clicks_keys_and_links(page: Page, server: Server, open_browser: Callable[..., Page]) -> None:
    page.goto(f"{server.url}/masked_lm?checkpoint=demo-bert")
    expect_page(page, "masked_lm", "demo-bert")
    the_answer_and_the_views_follow_the_typing_without_a_button(page)
    the_keyboard_masks_tokens(page)
    a_click_masks_a_token_and_another_shows_it_again(page)
    a_mask_stays_on_its_token_while_the_text_is_edited(page)
    a_link_shows_the_same_to_somebody_else(page, open_browser())


def the_answer_and_the_views_follow_the_typing_without_a_button(page: Page) -> None:
    expect(chip(page, "[MASK]")).to_contain_text(PERCENT)
    field(page).click()
    page.keyboard.press("Control+A")
    page.keyboard.type("the [MASK] of england and the ")
    expect(page.get_by_text("1 mask in 8 tokens")).to_be_visible()
    page.keyboard.type("[MASK]")  # the caret is still where it was, and the words too
    expect_masks(page, 2)
    expect(field(page)).to_have_value("the [MASK] of england and the [MASK]")
    expect(field(page)).to_be_focused()
    for _ in range(len(" and the [MASK]")):
        page.keyboard.press("ArrowLeft")
    page.keyboard.type("!")
    expect(page.get_by_text("2 masks in 10 tokens")).to_be_visible()
    page.keyboard.type("?")
    expect(field(page)).to_have_value("the [MASK] of england!? and the [MASK]")
    expect(page).to_have_url(re.compile("england%21%3F"))

    field(page).fill("the [MASK] of england.")
    expect_masks(page, 1)
    page.get_by_role("radio", name="Plausibility").click()
    expect(page.get_by_text("The text has a pseudo-perplexity of")).to_be_visible()
    expect(chip(page, "england")).to_have_css("background-color", re.compile(r"^rgb\("))
    expect(chip(page, "england")).to_contain_text(PERCENT)
    page.get_by_role("radio", name="Two sentences").click()
    second = page.get_by_label("Second sentence", exact=True)
    expect(second).to_have_value("the [MASK] of germany.")
    expect(page.get_by_test_id("stMarkdown").get_by_text("More likely with germany")).to_be_visible()
    second.fill("the [MASK] of a river.")
    expect(page.get_by_test_id("stMarkdown").get_by_text("More likely with a river")).to_be_visible()
    expect(page).to_have_url(re.compile("view=Two"))
    page.get_by_role("radio", name="History").click()
    field(page).click()
    page.keyboard.press("Control+A")
    page.keyboard.type("a glass of [MASK].")
    expect(chip(page, "glass")).to_be_visible()
    page.get_by_role("button", name="the [MASK] of england.").click()
    expect(field(page)).to_have_value("the [MASK] of england.")
    expect(chip(page, "england")).to_be_visible()
    expect(page).to_have_url(re.compile("view=History"))


def a_click_masks_a_token_and_another_shows_it_again(page: Page) -> None:
    open_link(page, text="the city of france.")
    expect(page.get_by_text("No token is masked yet")).to_be_visible()
    chip(page, "france").click()
    expect(chip(page, "france")).to_have_attribute("aria-pressed", "true")
    expect(chip(page, "france")).to_contain_text(PERCENT)
    chip(page, "city").click()
    expect_masks(page, 2)
    expect(page).to_have_url(re.compile("masks=2%2C4"))
    chip(page, "city").click()
    expect_masks(page, 1)
    expect(chip(page, "city")).to_have_attribute("aria-pressed", "false")
    expect(field(page)).to_have_value("the city of france.")
    page.get_by_role("button", name="Unmask all").click()
    expect(page.get_by_text("No token is masked yet")).to_be_visible()


def the_keyboard_masks_tokens(page: Page) -> None:
    open_link(page, text="the city of france.")
    field(page).focus()
    page.keyboard.press("Tab")
    expect(chip(page, "the")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(chip(page, "city")).to_have_attribute("aria-pressed", "true")
    expect_masks(page, 1)
    expect(chip(page, "city")).to_be_focused()  # also after the answer came
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    expect(chip(page, "france")).to_have_attribute("aria-pressed", "true")
    expect_masks(page, 2)
    expect(chip(page, "[CLS]")).to_be_disabled()


def a_mask_stays_on_its_token_while_the_text_is_edited(page: Page) -> None:
    open_link(page, text="the city of france.", masks="4")
    expect(chip(page, "france")).to_contain_text(PERCENT)
    field(page).click()
    page.keyboard.press("Home")
    page.keyboard.type("near ")
    expect(page).to_have_url(re.compile("masks=5"))
    expect(chip(page, "france")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")  # the token is another one now
    expect(page.get_by_text("No token is masked yet")).to_be_visible()
    expect(page).not_to_have_url(re.compile("masks="))


def a_link_shows_the_same_to_somebody_else(page: Page, other: Page) -> None:
    open_link(page, text="the city of france.", k="3", order="sure")
    chip(page, "city").click()
    expect_masks(page, 1)
    chip(page, "france").click()
    expect_masks(page, 2)
    expect(page.get_by_text("the most confident mask first")).to_be_visible()
    expect(page).to_have_url(re.compile("masks=2%2C4"))
    expect_calm(page)
    notes = page.locator(".chip .note").all_inner_texts()
    assert sum(bool(note) for note in notes) == 2

    other.goto(page.url)
    expect_page(other, "masked_lm", "demo-bert")
    expect(field(other)).to_have_value("the city of france.")
    expect(other.get_by_text("the most confident mask first")).to_be_visible()
    expect_masks(other, 2)
    expect_calm(other)
    assert other.locator(".chip .note").all_inner_texts() == notes
