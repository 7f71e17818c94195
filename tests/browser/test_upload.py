"""Checkpoints that nobody here made, through a real file input."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from inspector.text import JOINER
from tests.browser.looking import expect_calm, expect_page, fill, go_to, metric


@pytest.fixture(scope="session")
def minilm_zip(minilm_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("uploads") / "minilm.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(minilm_folder.iterdir()):
            if path.is_file():
                archive.write(path, f"minilm/{path.name}")
    return target


def open_file(page: Page, *paths: Path) -> None:
    """Choose files in the sidebar's file input."""
    page.get_by_test_id("stSidebar").get_by_text("Open your own").click()
    page.get_by_test_id("stSidebar").locator("input[type=file]").set_input_files([str(path) for path in paths])


def test_minilm_uploaded_as_a_zip_answers_on_every_page(page: Page, server: Server, minilm_zip: Path) -> None:
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    open_file(page, minilm_zip)
    expect_page(page, "overview", "minilm")
    expect(page).to_have_url(re.compile(r"checkpoint=upload(:|%3A)[0-9a-f]{16}"))
    expect(metric(page, "Vocabulary rows")).to_have_text("30,522")
    expect(page.locator(".stMarkdownBadge").filter(has_text="Masked LM: absent")).to_be_visible()

    go_to(page, "masked_lm")
    expect_page(page, "masked_lm", "minilm")
    expect(page.get_by_text("has no MLM head")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(0)

    go_to(page, "embeddings")
    expect_page(page, "embeddings", "minilm")
    expect(page.get_by_test_id("stMain").get_by_text("30,522 × 384").first).to_be_visible()
    expect(page.get_by_text("padding (1)")).to_be_visible()
    expect(page.get_by_test_id("stMain").get_by_text("1.1110")).to_be_visible()  # the median norm

    go_to(page, "sharing")
    expect_page(page, "sharing", "minilm")
    expect(page.get_by_text("Nothing is shared: each of the")).to_be_visible()

    go_to(page, "lens")
    expect_page(page, "lens", "minilm")
    expect(page.get_by_text("the file has no language-model head").first).to_be_visible()
    _is_closed_to_other_users(server.log.parent / "store" / "checkpoints")
    expect(page.get_by_role("heading", name=re.compile("^Layer 6, position"))).to_be_visible()

    expect(page).to_have_url(re.compile(r"/lens\?checkpoint=upload"))
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    expect_page(page, "lens", "minilm")
    _rename_and_delete(page)


def _is_closed_to_other_users(store: Path) -> None:
    modes = {path: path.lstat().st_mode & 0o077 for path in (store, *store.rglob("*"))}
    assert any(path.name.endswith(".safetensors") for path in modes)
    assert not [path for path, mode in modes.items() if mode]


def _rename_and_delete(page: Page) -> None:
    go_to(page, "overview")
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_role("button", name="Rename or delete").click()
    fill(page, "Name", "my encoder *x*")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect_page(page, "overview", "my encoder *x*")
    expect(page).to_have_url(re.compile(r"checkpoint=upload"))
    link = page.url
    expect(page.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    page.get_by_text("Yes, delete it from the store").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect_page(page, "overview", "demo-bert")
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_text("is no longer in the store")).to_be_visible()


def test_a_refusal_leaves_the_open_checkpoint_open_and_loose_files_are_opened_together(
    page: Page, server: Server, minilm_folder: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.zip"
    with zipfile.ZipFile(broken, "w") as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.safetensors", b"\x10\0\0\0\0\0\0\0{")
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    open_file(page, broken)
    expect(page.get_by_test_id("stAlert")).to_contain_text("model.safetensors")
    expect(page.get_by_text("stays open")).to_be_visible()
    expect_page(page, "overview", "demo-bert")
    expect(metric(page, "Parameters")).to_be_visible()
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_text("stays open")).to_have_count(0)
    expect_calm(page)

    page.get_by_test_id("stSidebar").locator("input[type=file]").set_input_files(str(minilm_folder / "config.json"))
    page.get_by_role("button", name="Open 1 file").click()
    expect(page.get_by_test_id("stAlert")).to_contain_text("There are no weights")
    expect_page(page, "overview", "demo-bert")


def test_a_strangers_text_is_never_markup(page: Page, server: Server) -> None:
    text = "www.b.example mailto:a@d.example ![x](https://e.org/x.png) <b>bold</b> :red[y]"
    page.goto(f"{server.url}/?checkpoint={quote(text)}")
    alert = page.get_by_test_id("stAlert")
    expect(alert).to_contain_text(":red[y]")
    assert text in alert.inner_text().replace(JOINER, "")
    expect(alert.get_by_role("link")).to_have_count(0)
    expect(page.get_by_test_id("stMain").locator("img")).to_have_count(0)
    expect(page.get_by_test_id("stMain").locator("b", has_text="bold")).to_have_count(0)
