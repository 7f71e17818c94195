"""A page that is reloaded while it uploads, and the memory that an upload takes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page
from tests.browser.uploading import as_zip, expect_ready, files, give, stored
from tests.models.sizes import peak_nbytes

NBYTES = 96 * 2**20  # of an upload that is large beside what a server needs
UPLOADED = re.compile("/_stcore/upload_file/")
INTERRUPTED = "An upload was interrupted before it was complete. Nothing was stored"


def test_a_reload_while_a_file_comes_says_that_it_was_interrupted(
    page: Page, sidebar: tuple[Server, Locator], tmp_path: Path
) -> None:
    server, where = sidebar
    large = tmp_path / "large.zip"
    large.write_bytes(os.urandom(8 * 2**20))
    talk = page.context.new_cdp_session(page)
    talk.send("Network.enable")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1}
    talk.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": 100_000})
    with page.expect_request(UPLOADED):
        give(where, large)
    expect(where.get_by_test_id("stFileChip")).to_be_visible()
    page.reload()  # while it is slow: at full speed the rest could arrive before the page has gone
    talk.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": -1})
    expect(page.get_by_test_id("stAlert")).to_contain_text(INTERRUPTED)
    expect_page(page, "overview", "demo-bert")
    assert stored(server) == set()
    where.get_by_text("Open your own").click()
    give(where, as_zip(tmp_path / "again.zip", files(50)))
    expect_page(page, "overview", "again")
    expect(page.get_by_text(INTERRUPTED)).to_have_count(0)
    page.reload()
    expect_page(page, "overview", "again")
    expect(page.get_by_test_id("stAlert").filter(has_text="interrupted")).to_have_count(0)


def test_a_reload_while_an_upload_is_opened_takes_it_over(
    page: Page, sidebar: tuple[Server, Locator], tmp_path: Path
) -> None:
    server, where = sidebar
    for number, name in enumerate(["first", "second"]):  # the second from a page whose address names the first
        with server.hold():
            give(where, as_zip(tmp_path / f"{name}.zip", files(51 + number)))
            expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
            page.reload()
        expect_page(page, "overview", name)
        expect_calm(page)
        expect(page).to_have_url(re.compile("checkpoint=upload"))
        where.get_by_text("Open your own").click()
    assert stored(server) == {"first", "second"}


def test_an_upload_needs_no_memory_of_the_server(page: Page, sidebar: tuple[Server, Locator], tmp_path: Path) -> None:
    server, where = sidebar
    process = Path(f"/proc/{server.process.pid}")
    give(where, as_zip(tmp_path / "small.zip", {"notes.bin": b"nothing"}))
    expect(page.get_by_text("stays open")).to_be_visible()
    expect_ready(where)
    (process / "clear_refs").write_text("5")  # the peak counts from here
    before = peak_nbytes(server.process.pid)
    give(where, as_zip(tmp_path / "large.zip", {"large.bin": os.urandom(NBYTES)}))
    expect(page.get_by_test_id("stAlert")).to_contain_text("large.bin")
    expect_ready(where)
    assert peak_nbytes(server.process.pid) - before < NBYTES // 4
    assert stored(server) == set()
