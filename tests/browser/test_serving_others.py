"""A server that others reach: folders of the machine are closed unless a setting opens them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from inspector.demo import DEMOS
from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, fill, go_to

EVERYWHERE = "--server.address=0.0.0.0"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one checkpoint below it."""
    shutil.copytree(DEMOS["demo-bert"].folder, tmp_path / "team" / "ours")
    return tmp_path


def test_paths_are_closed_and_the_sidebar_says_so(page: Page, start_server: Callable[..., Server], root: Path) -> None:
    server = start_server(EVERYWHERE, INSPECTOR_ROOTS=str(root))
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_text("Open your own").click()
    expect(
        sidebar.get_by_text("folders cannot be opened by path here. To allow this, set INSPECTOR_PATHS=1.")
    ).to_be_visible()
    expect(page.get_by_role("radio", name="Path")).to_have_count(0)
    for path in (root / "team/ours", "team/ours"):
        page.goto(f"{server.url}/?checkpoint=path:{path}")
        expect(page.get_by_test_id("stAlert")).to_contain_text("This path cannot be opened here")


def test_a_setting_opens_them_without_telling_where_they_lie(
    page: Page, start_server: Callable[..., Server], root: Path
) -> None:
    server = start_server(EVERYWHERE, INSPECTOR_ROOTS=str(root), INSPECTOR_PATHS="1")
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_text("Open your own").click()
    page.get_by_role("radio", name="Path").click()
    expect(sidebar.get_by_text("A path below one of the folders")).to_be_visible()
    expect_calm(page)  # the form has its button, without which Enter does nothing
    fill(page, "Folder, archive or weight file", "team/ours")
    expect_page(page, "overview", "ours")
    go_to(page, "sharing")
    expect_page(page, "sharing", "ours")
    page.get_by_text("Share this view").click()
    expect(page.get_by_text(re.compile(r"python -m inspector sharing ours\b"))).to_be_visible()
    assert str(root) not in page.content()
    page.goto(f"{server.url}/?checkpoint=path:../../etc")
    expect(page.get_by_test_id("stAlert")).to_contain_text("This path cannot be opened here")
