"""Two people of one server, each in a browser of their own: whose an upload is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import Page, expect

from inspector.serving.people import SECRET_COOKIE
from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page
from tests.browser.uploading import as_zip, files, stored

EVERYWHERE = "--server.address=0.0.0.0"


@pytest.fixture(scope="module")
def shared_by_two(start_server: Callable[..., Server]) -> Server:
    return start_server(EVERYWHERE)


def send(page: Page, server: Server, archive: Path, name: str) -> str:
    """Upload an archive; the link that opens it."""
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_text("Open your own").click()
    sidebar.locator("input[type=file]").set_input_files(str(archive))
    expect_page(page, "overview", name)
    expect(page).to_have_url(re.compile(r"checkpoint=upload(:|%3A)[0-9a-f]{64}"))
    return page.url


def expect_listed(page: Page, *names: str) -> None:
    """The list of checkpoints has these uploads, and no other."""
    page.get_by_test_id("stSidebar").get_by_role("combobox", name="Checkpoint").click()
    options = page.get_by_role("option")
    expect(options.first).to_be_visible()
    found = [text for text in options.all_text_contents() if not text.startswith("demo-")]
    assert sorted(found) == sorted(names)
    page.keyboard.press("Escape")


def test_an_upload_is_whoever_sent_its(
    open_browser: Callable[..., Page], shared_by_two: Server, tmp_path: Path
) -> None:
    ada, eve = open_browser(), open_browser()
    link = send(ada, shared_by_two, as_zip(tmp_path / "alpha.zip", files(11)), "alpha")
    (cookie,) = [each for each in ada.context.cookies() if each.get("name") == SECRET_COOKIE]
    assert cookie.get("httpOnly")
    assert cookie.get("sameSite") == "Lax"

    eve.goto(shared_by_two.url)
    expect_page(eve, "overview", "demo-bert")
    expect_listed(eve)
    eve.goto(link)  # for a colleague: to look at
    expect_page(eve, "overview", "alpha")
    expect(eve.get_by_text("Rename or delete")).to_have_count(0)
    short = re.sub(r"(upload:[0-9a-f]{16})[0-9a-f]{48}", r"\1", unquote(link))
    assert short != link
    eve.goto(short)
    expect(eve.get_by_test_id("stAlert")).to_contain_text("This upload is not one of yours")
    ada.goto(short)
    expect_page(ada, "overview", "alpha")

    ada.get_by_text("Rename or delete").click()
    ada.get_by_text("Share with everybody here").click()
    expect_calm(ada)
    eve.goto(shared_by_two.url)
    expect_page(eve, "overview", "demo-bert")
    expect_listed(eve, "alpha")


def test_equal_content_tells_nobody_of_the_other_and_goes_with_its_last_owner(
    open_browser: Callable[..., Page], shared_by_two: Server, tmp_path: Path
) -> None:
    ada, eve = open_browser(), open_browser()
    link = send(ada, shared_by_two, as_zip(tmp_path / "hers.zip", files(12)), "hers")
    assert send(eve, shared_by_two, as_zip(tmp_path / "mine.zip", files(12)), "mine") == link
    eve.reload()
    expect_page(eve, "overview", "mine")
    expect_listed(eve, "mine", "alpha")  # which its owner shares
    eve.goto(f"{shared_by_two.url}/server")
    expect(eve.get_by_role("heading", name="Server", level=1)).to_be_visible()
    expect_calm(eve)
    assert "hers" not in eve.get_by_test_id("stMain").inner_text()
    eve.goto(link)
    expect_page(eve, "overview", "mine")
    delete(eve)
    expect_page(eve, "overview", "demo-bert")
    ada.reload()
    expect_page(ada, "overview", "hers")
    delete(ada)
    expect_page(ada, "overview", "demo-bert")
    assert not stored(shared_by_two) & {"hers", "mine"}


def delete(page: Page) -> None:
    """Delete the open upload."""
    page.get_by_text("Rename or delete").click()
    page.get_by_text("Yes, delete it").click()
    page.get_by_role("button", name="Delete", exact=True).click()
