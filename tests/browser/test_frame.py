"""The frame around every page: one line of heading, the sidebar, and addresses that lead nowhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from inspector.catalog import PAGES
from inspector.serving.trial import Server
from tests.browser.looking import PAGE_LINKS, SLUGS, expect_calm, expect_page, follow
from tests.browser.uploading import files, stored

MARKED = """title => {
  const bold = (link) => [...link.querySelectorAll("*")].some((part) => getComputedStyle(part).fontWeight >= 600);
  const links = [...document.querySelectorAll(".st-key-pages a")].filter(bold);
  return links.length === 1 && links[0].innerText.includes(title);
}"""
FOLD = 800


def expect_marked(page: Page, slug: str) -> None:
    """One link of the sidebar is marked as the page that is shown."""
    page.wait_for_function(MARKED, arg=PAGES[slug].title)


def expect_above_the_fold(place: Locator) -> None:
    """All of it is in sight, once the style sheet is there: looked up anew each time, as Streamlit draws anew."""
    expect(place).to_be_in_viewport(ratio=1)


def test_an_unknown_page_lists_the_pages(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/nonsense?checkpoint=demo-gpt2")
    expect(page.get_by_role("heading", name="No such page", level=1)).to_be_visible()
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text("This address ends in nonsense, which is not a page.")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(main.get_by_role("link")).to_have_count(len(SLUGS) + 3)
    main.get_by_role("link", name=PAGES["sharing"].title).click()
    expect_page(page, "sharing", "demo-gpt2")
    expect(page).to_have_url(re.compile(r"/sharing\?"))


def test_the_sidebar_marks_the_page_at_both_of_its_addresses(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/overview")
    expect_page(page, "overview", "demo-bert")
    expect_marked(page, "overview")
    follow(page, "/")
    expect_page(page, "overview", "demo-bert")
    expect_marked(page, "overview")
    page.locator(PAGE_LINKS).get_by_role("link", name=PAGES["lens"].title).click()
    expect_page(page, "lens", "demo-bert")
    expect_marked(page, "lens")


def test_focus_is_seen_in_the_sidebar(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/server")
    expect(page.get_by_role("heading", name="Server", level=1)).to_be_visible()
    expect_calm(page)
    page.get_by_role("combobox", name="Checkpoint").focus()
    for _ in range(4):
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_css("outline-style", "solid")
        expect(page.locator(":focus")).to_have_css("outline-width", "2px")


def test_files_are_opened_above_the_fold(
    empty_server: Server, open_browser: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_browser(width=1280, height=FOLD)
    page.goto(empty_server.url)
    expect_page(page, "overview", "demo-bert")
    sidebar = page.get_by_test_id("stSidebar")
    expect_above_the_fold(sidebar.get_by_role("link", name="Server"))  # while it is closed
    sidebar.get_by_text("Open your own").click()
    for name, content in files(33).items():
        (tmp_path / name).write_bytes(content)
    sidebar.locator("input[type=file]").set_input_files(sorted(tmp_path.iterdir()))
    opener = sidebar.get_by_role("button", name=re.compile(r"Open \d files"))
    expect(opener).to_be_visible()
    expect_above_the_fold(opener)
    opener.click()  # what nobody opens would lie in the store of the tests after this one
    expect(opener).to_have_count(0)
    expect_calm(page)
    assert len(stored(empty_server)) == 1
