"""The keyboard alone: to the text, to a page, through the cells of a heat map, and what is listed."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_address, expect_calm, expect_page


def test_keys_lead_to_the_text_to_pages_and_through_the_heat_map(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens?checkpoint=demo-gpt2")
    expect_page(page, "lens", "demo-gpt2")
    expect(page.locator(".opener + dialog tr").first).to_be_attached()  # the list is written when the keys are heard
    text = page.get_by_label("Text", exact=True)
    page.keyboard.press("/")
    expect(text).to_be_focused()
    before = text.input_value()
    page.keyboard.press("End")
    page.keyboard.type("g/?")  # in a text they are letters
    expect(text).to_have_value(f"{before}g/?")
    for _ in range(3):
        page.keyboard.press("Backspace")
    text.blur()

    cells = page.get_by_role("group", name="Heat map: arrow keys choose a cell")
    cells.focus()
    expect(cells).to_have_css("outline-style", "solid")
    position = page.get_by_label("Position", exact=True)
    was = int(position.input_value())
    page.keyboard.press("ArrowLeft")
    expect(position).to_have_value(str(was - 1))
    expect_address(page, "lens", position=str(was - 1))
    expect_calm(page)
    expect(cells).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect_address(page, "lens", layer=str(int(page.get_by_label("Layer", exact=True).input_value())))

    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard")
    expect(keys.get_by_role("row", name="g k Checks")).to_be_visible()
    page.keyboard.press("g")  # is no key there
    page.keyboard.press("k")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    expect_page(page, "lens", "demo-gpt2")
    page.keyboard.press("g")
    page.keyboard.press("k")
    expect_page(page, "checks", "demo-gpt2")

    page.get_by_role("button", name="Keyboard ?").click()
    keys.get_by_label("Use single keys").uncheck()
    keys.get_by_role("button", name="Close").click()
    page.get_by_role("heading", name="Checks", level=1).click()
    page.keyboard.press("?")
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect_calm(page)
    expect(keys).to_be_hidden()
    expect_page(page, "checks", "demo-gpt2")
