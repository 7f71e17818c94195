"""Upload after upload on one page, and what the server then still holds."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_page, metric
from tests.browser.uploading import as_zip, expect_ready, files, give, stored

UPLOADED = re.compile("/_stcore/upload_file/")


def as_tar(path: Path, contents: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def as_folder(path: Path, contents: dict[str, bytes]) -> Path:
    path.mkdir()
    for name, content in contents.items():
        (path / name).write_bytes(content)
    return path


def test_eight_uploads_in_a_row(page: Page, sidebar: tuple[Server, Locator], tmp_path: Path) -> None:
    server, where = sidebar
    names: set[str] = set()

    def expect_open(name: str, rows: int) -> None:
        expect_page(page, "overview", name)
        expect(metric(page, "Vocabulary rows")).to_have_text(str(rows))
        expect_ready(where)
        expect(page.get_by_text("stays open")).to_have_count(0)
        names.add(name)
        assert stored(server) == names

    give(where, as_zip(tmp_path / "first.zip", files(30)))
    expect_open("first", 30)
    loose = as_folder(tmp_path / "loose", files(31))
    give(where, *loose.iterdir())
    where.get_by_role("button", name="Open 2 files").click()
    expect_open("BertModel", 31)
    where.get_by_role("radio", name="Folder").click()
    where.locator("input[type=file][webkitdirectory]").set_input_files(str(as_folder(tmp_path / "third", files(32))))
    expect_open("third", 32)
    where.get_by_role("radio", name="Files").click()
    give(where, as_tar(tmp_path / "fourth.tar.gz", files(33)))
    expect_open("fourth", 33)

    give(where, as_zip(tmp_path / "refused.zip", {"config.json": b"{}"}))
    expect(page.get_by_text("stays open")).to_be_visible()
    expect_ready(where)
    expect_page(page, "overview", "fourth")
    assert stored(server) == names

    sixth = as_zip(tmp_path / "sixth.zip", files(34))
    give(where, sixth)
    expect_open("sixth", 34)
    give(where, as_zip(tmp_path / "seventh.zip", files(35)))
    expect_open("seventh", 35)
    give(where, sixth)
    expect_open("sixth", 34)


def test_uploads_that_come_faster_than_they_are_opened(
    page: Page, sidebar: tuple[Server, Locator], tmp_path: Path
) -> None:
    server, where = sidebar
    chips = where.get_by_test_id("stFileChip").filter(visible=True)
    with server.hold():
        for number in range(3):
            with page.expect_response(UPLOADED):
                give(where, as_zip(tmp_path / f"fast{number}.zip", files(40 + number)))
            expect(chips).to_have_count(0)
    expect_page(page, "overview", "fast2")
    expect_ready(where)
    assert stored(server) == {"fast0", "fast1", "fast2"}
