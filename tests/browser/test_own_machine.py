"""On one's own machine a folder opens by its path without a setting; a link to one asks, as ever."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from inspector.demo import DEMOS
from inspector.serving.trial import Server
from tests.browser.looking import expect_page, fill

HOSTILE = "<b>x [a](http:e) \u202egpj"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with checkpoints in it, one of them in the hub's cache."""
    folder = tmp_path_factory.mktemp("home")
    hub = folder / ".cache/huggingface/hub/models--org--tiny/snapshots" / ("0123456789" * 4)
    for place in (folder / "ours", folder / "models" / HOSTILE, hub):
        shutil.copytree(DEMOS["demo-bert"].folder, place)
    return folder


@pytest.fixture(scope="module")
def here(start_server: Callable[..., Server], home: Path) -> Server:
    """A server that was started with one of them."""
    return start_server(HOME=str(home), HF_HOME="", HF_HUB_CACHE="", INSPECTOR_OPEN=f"path:{home}/ours")


def test_what_it_was_started_with_is_open_and_others_are_found(page: Page, here: Server, home: Path) -> None:
    page.goto(here.url)
    expect_page(page, "overview", "ours")
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_text("Open your own").click()
    page.get_by_role("radio", name="Path").click()
    boxes = [sidebar.get_by_role("radio", name=name).bounding_box() for name in ("Files", "Folder", "Hub", "Path")]
    assert len({box["y"] for box in boxes if box}) == 1  # in one line
    found = sidebar.get_by_role("combobox", name="Found on this machine")
    found.scroll_into_view_if_needed()
    found.click()
    options = page.get_by_role("option")
    expect(options.filter(has_text="org/tiny · hub cache")).to_be_visible()
    expect(options.filter(has_text="ours · ~")).to_be_visible()
    options.filter(has_text="<b>x [a](http:e) \\u202egpj").click()
    expect_page(page, "overview", "<b>x [a](http:e) gpj")
    fill(page, "Folder, archive or weight file", "~/ours")
    expect_page(page, "overview", "ours")


def test_a_link_to_another_folder_asks(page: Page, here: Server, home: Path) -> None:
    page.goto(f"{here.url}/?checkpoint=path:{home}/models/{HOSTILE}")
    expect(page.get_by_text("This link opens files")).to_be_visible()
    page.goto(f"{here.url}/sharing?checkpoint=path:{home}/ours")  # the user's own word, given when it was started
    expect_page(page, "sharing", "ours")
