"""Folders of the server and hub models: a link from elsewhere asks before it opens one; the app itself asks nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from inspector.demo import DEMOS, RUNS
from serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, fill, go_to, metric

QUESTION = "This link opens"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two checkpoints and a run below it."""
    folder = tmp_path_factory.mktemp("root")
    for name in ("ours", "theirs"):
        shutil.copytree(DEMOS["demo-bert"].folder, folder / name)
    for demo in list(RUNS["demo-run"].values())[:2]:
        shutil.copytree(demo.folder, folder / "run" / demo.folder.name)
    return folder


@pytest.fixture(scope="module")
def here(start_server: Callable[..., Server], root: Path, minilm_folder: Path) -> Server:
    """A server that may open that folder, and that of an installed encoder."""
    return start_server(INSPECTOR_ROOTS=os.pathsep.join((str(root), str(minilm_folder.parent))))


def stored(server: Server) -> list[Path]:
    """What the server has opened, apart from the demo that opens by itself."""
    return [path for path in (server.log.parent / "store").rglob("manifest.json") if "ours" in path.read_text()]


def test_a_link_asks_once(page: Page, here: Server) -> None:
    page.goto(f"{here.url}/sharing?checkpoint=path:ours")
    question = page.get_by_text(QUESTION)
    expect(question).to_be_visible()
    expect(page.get_by_test_id("stCode")).to_have_text("ours")
    expect_calm(page)
    assert stored(here) == []
    go_to(page, "overview")  # is no agreement
    expect(question).to_be_visible()
    expect_calm(page)
    assert stored(here) == []
    page.get_by_role("button", name="Open these files").click()
    expect_page(page, "overview", "ours")
    assert stored(here)
    go_to(page, "sharing")
    expect_page(page, "sharing", "ours")
    expect(question).to_have_count(0)
    page.reload()
    expect_page(page, "sharing", "ours")
    expect(question).to_have_count(0)
    page.go_back()
    expect_page(page, "overview", "ours")
    expect(question).to_have_count(0)


def test_another_browser_is_asked_itself(page: Page, here: Server, open_browser: Callable[..., Page]) -> None:
    page.goto(f"{here.url}/?checkpoint=path:theirs")
    page.get_by_role("button", name="Open these files").click()
    expect_page(page, "overview", "theirs")
    visitor = open_browser()
    visitor.goto(f"{here.url}/?checkpoint=path:theirs")
    expect(visitor.get_by_text(QUESTION)).to_be_visible()


def test_what_is_typed_is_not_asked_about(page: Page, here: Server) -> None:
    page.goto(f"{here.url}/compare?checkpoint=demo-gpt2")
    expect_page(page, "compare", "demo-gpt2")
    fill(page, "Second checkpoint", "path:ours")
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect(page.get_by_text(QUESTION)).to_have_count(0)


@pytest.mark.parametrize("link", ["compare?other=path:theirs", "snapshots?run=path:run"])
def test_a_second_checkpoint_and_a_run_ask_once(link: str, page: Page, here: Server) -> None:
    page.goto(f"{here.url}/{link}")
    expect(page.get_by_text(QUESTION)).to_be_visible()
    page.get_by_role("button", name="Open these files").click()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect(page.get_by_text(QUESTION)).to_have_count(0)
    page.reload()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect(page.get_by_text(QUESTION)).to_have_count(0)


def test_the_way_back_to_what_was_not_agreed_to_asks(page: Page, here: Server) -> None:
    page.goto(f"{here.url}/?checkpoint=hub:org/name")
    expect(page.get_by_test_id("stCode")).to_have_text("org/name")
    page.get_by_role("button", name="Open demo-bert instead").click()
    expect_page(page, "overview", "demo-bert")
    page.wait_for_function("() => new URL(location).searchParams.get('checkpoint') === 'demo-bert'")
    page.go_back()
    expect(page.get_by_text(QUESTION)).to_be_visible()
    page.get_by_role("button", name="Keep demo-bert").click()
    expect_page(page, "overview", "demo-bert")


def test_a_path_outside_the_allowed_folders_is_refused(page: Page, here: Server) -> None:
    page.goto(f"{here.url}/?checkpoint=path:/etc")
    expect(page.get_by_test_id("stAlert")).to_contain_text("This path cannot be opened here")
    page.goto(f"{here.url}/?checkpoint=path:/no/such/folder")
    expect(page.get_by_test_id("stAlert")).to_contain_text("This path cannot be opened here")


def test_a_folder_below_an_allowed_one_is_opened(page: Page, here: Server, minilm_folder: Path) -> None:
    page.goto(here.url)
    expect_page(page, "overview", "demo-bert")
    page.get_by_test_id("stSidebar").get_by_text("Open your own").click()
    page.get_by_role("radio", name="Path").click()
    fill(page, "Folder, archive or weight file", str(minilm_folder))
    expect_page(page, "overview", f"{minilm_folder.parent.name}/model")
    expect(metric(page, "Vocabulary rows")).to_have_text("30,522")
