"""Files dropped anywhere on a page."""

from __future__ import annotations

import base64
from pathlib import Path

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, metric
from tests.browser.uploading import as_zip, files, stored

DROP = """files => {
  const dataTransfer = new DataTransfer();
  for (const [name, content] of Object.entries(files))
    dataTransfer.items.add(new File([Uint8Array.from(atob(content), each => each.charCodeAt())], name));
  const main = document.querySelector("[data-testid=stMain] h1");
  for (const type of ["dragover", "drop"])
    main.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
}"""


def drop(page: Page, *paths: Path) -> None:
    """Drop files on a page's title."""
    expect_calm(page)
    expect(page.locator("body[data-drops]")).to_be_attached()
    page.evaluate(DROP, {path.name: base64.b64encode(path.read_bytes()).decode() for path in paths})


def test_an_archive_dropped_on_a_page_opens_whatever_lies_beside_it(
    page: Page, empty_server: Server, tmp_path: Path
) -> None:
    stray = tmp_path / "cat.png"
    stray.write_bytes(b"\x89PNG")
    page.goto(empty_server.url)
    expect_page(page, "overview", "demo-bert")
    drop(page, stray, as_zip(tmp_path / "dropped.zip", files(30)))
    expect_page(page, "overview", "dropped")
    expect(metric(page, "Vocabulary rows")).to_have_text("30")
    sidebar = page.get_by_test_id("stSidebar")
    expect(sidebar.get_by_text("Ignored: cat.png.")).to_be_visible()
    assert stored(empty_server) == {"dropped"}

    sidebar.get_by_role("radio", name="Hub").click()
    expect(sidebar.get_by_label("Hub id")).to_be_visible()
    drop(page, as_zip(tmp_path / "second.zip", files(31)))
    expect_page(page, "overview", "second")
    expect(sidebar.get_by_text("Ignored")).to_have_count(0)
    assert stored(empty_server) == {"dropped", "second"}
