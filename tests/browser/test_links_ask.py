"""Folders of the server and hub models: a link from elsewhere asks before it opens one; the app itself asks nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, fill, go_to, metric

QUESTION = "This link opens"


def stored(server: Server) -> list[Path]:
    """What the server has opened, apart from the demo that opens by itself."""
    return [path for path in (server.log.parent / "store").rglob("manifest.json") if "ours" in path.read_text()]


def test_a_link_asks_once(page: Page, asking_server: Server) -> None:
    page.goto(f"{asking_server.url}/sharing?checkpoint=path:ours")
    question = page.get_by_text(QUESTION)
    expect(question).to_be_visible()
    expect(page.get_by_test_id("stCode")).to_have_text("ours")
    expect_calm(page)
    assert stored(asking_server) == []
    go_to(page, "overview")  # is no agreement
    expect(question).to_be_visible()
    expect_calm(page)
    assert stored(asking_server) == []
    page.get_by_role("button", name="Open these files").click()
    expect_page(page, "overview", "ours")
    assert stored(asking_server)
    go_to(page, "sharing")
    expect_page(page, "sharing", "ours")
    expect(question).to_have_count(0)
    page.reload()
    expect_page(page, "sharing", "ours")
    expect(question).to_have_count(0)
    page.go_back()
    expect_page(page, "overview", "ours")
    expect(question).to_have_count(0)


def test_another_browser_is_asked_itself(page: Page, asking_server: Server, open_browser: Callable[..., Page]) -> None:
    page.goto(f"{asking_server.url}/?checkpoint=path:theirs")
    page.get_by_role("button", name="Open these files").click()
    expect_page(page, "overview", "theirs")
    visitor = open_browser()
    visitor.goto(f"{asking_server.url}/?checkpoint=path:theirs")
    expect(visitor.get_by_text(QUESTION)).to_be_visible()


def test_the_way_back_to_what_was_not_agreed_to_asks(page: Page, asking_server: Server) -> None:
    page.goto(f"{asking_server.url}/?checkpoint=hub:org/name")
    expect(page.get_by_test_id("stCode")).to_have_text("org/name")
    page.get_by_role("button", name="Open demo-bert instead").click()
    expect_page(page, "overview", "demo-bert")
    page.wait_for_function("() => new URL(location).searchParams.get('checkpoint') === 'demo-bert'")
    page.go_back()
    expect(page.get_by_text(QUESTION)).to_be_visible()
    page.get_by_role("button", name="Keep demo-bert").click()
    expect_page(page, "overview", "demo-bert")


def test_a_path_outside_the_allowed_folders_is_refused(page: Page, asking_server: Server) -> None:
    page.goto(f"{asking_server.url}/?checkpoint=path:/etc")
    expect(page.get_by_test_id("stAlert")).to_contain_text("This path cannot be opened here")
    page.goto(f"{asking_server.url}/?checkpoint=path:/no/such/folder")
    expect(page.get_by_test_id("stAlert")).to_contain_text("This path cannot be opened here")


def test_a_folder_below_an_allowed_one_is_opened(page: Page, asking_server: Server, minilm_folder: Path) -> None:
    page.goto(asking_server.url)
    expect_page(page, "overview", "demo-bert")
    page.get_by_test_id("stSidebar").get_by_text("Open your own").click()
    page.get_by_role("radio", name="Path").click()
    expect(page.get_by_label("Folder, archive or weight file", exact=True)).to_be_visible()
    expect_calm(page)  # the form has its button, without which Enter does nothing
    fill(page, "Folder, archive or weight file", str(minilm_folder))
    expect_page(page, "overview", f"{minilm_folder.parent.name}/model")
    expect(metric(page, "Vocabulary rows")).to_have_text("30,522")
