"""Upload after upload where the main part of a page takes them: snapshots, and the second checkpoint."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.uploading import as_zip, expect_ready, files, give, stored


def test_archives_of_snapshots_in_a_row(page: Page, empty_server: Server, tmp_path: Path) -> None:
    page.goto(f"{empty_server.url}/snapshots")
    where = page.get_by_test_id("stMain")
    where.get_by_text("Upload snapshots").click()
    for number, name in enumerate(("one", "two", "none", "three")):
        snapshots = {
            f"{name}/step-{step}/{file}": content
            for step in (1, 2)
            for file, content in files(60 + 2 * number + step).items()
            if name != "none"
        }
        give(where, as_zip(tmp_path / f"{name}.zip", snapshots or {"notes.bin": b"nothing"}))
        if name == "none":
            expect(page.get_by_test_id("stAlert").filter(has_text="none.zip")).to_be_visible()
        else:
            expect(page).to_have_url(re.compile(f"run=uploads(:|%3A){name}"))
            expect(page.get_by_test_id("stAlert").filter(has_text="none.zip")).to_have_count(0)
        expect_ready(where)
    assert len(stored(empty_server)) == 6


def test_second_checkpoints_in_a_row(page: Page, empty_server: Server, tmp_path: Path) -> None:
    page.goto(f"{empty_server.url}/compare")
    where = page.get_by_test_id("stMain")
    where.get_by_text("Upload the second checkpoint").click()
    for number, name in enumerate(("one", "two", "broken", "three")):
        contents = files(80 + number) if name != "broken" else {"config.json": b"{}"}
        give(where, as_zip(tmp_path / f"{name}.zip", contents))
        if name == "broken":
            expect(page.get_by_test_id("stAlert").filter(has_text="weights")).to_be_visible()
            expect(page).to_have_url(re.compile(r"other=two"))
        else:
            expect(page).to_have_url(re.compile(rf"other={name}"))
            expect(where.get_by_role("tab", name="Tensors", exact=True)).to_be_visible()
        expect_ready(where)
    assert stored(empty_server) == {"one", "two", "three"}
