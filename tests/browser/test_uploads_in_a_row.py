"""Upload after upload on one page, reloads in between, and what the server then still holds."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect
from safetensors.numpy import save

from inspector.settings import read_settings
from inspector.store import registry
from serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, metric
from tests.models.sizes import peak_nbytes

CONFIG = {
    "model_type": "bert", "architectures": ["BertModel"], "hidden_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12,
    "max_position_embeddings": 16, "type_vocab_size": 2,
}  # fmt: skip
NBYTES = 96 * 2**20  # of an upload that is large beside what a server needs
UPLOADED = re.compile("/_stcore/upload_file/")
INTERRUPTED = "An upload was interrupted before it was complete. Nothing was stored"


def files(rows: int) -> dict[str, bytes]:
    """A real, small checkpoint; its number of rows tells it from others."""
    weights = np.random.default_rng(rows).normal(size=(rows, 8)).astype(np.float32)
    return {
        "config.json": json.dumps(CONFIG | {"vocab_size": rows}).encode(),
        "model.safetensors": save({"embeddings.word_embeddings.weight": weights}),
    }


def as_zip(path: Path, contents: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


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


def stored(server: Server) -> set[str]:
    """Names of what the store holds; nothing that arrived lies about."""
    settings = read_settings({"INSPECTOR_HOME": str(server.log.parent / "store")})
    assert list((settings.home / "incoming").glob("[!.]*")) == []
    return {entry.name for entry in registry.list_checkpoints(settings)}


def give(where: Locator, *paths: Path) -> None:
    """Choose files in an input; until a run ends, Streamlit keeps the one before, unseen."""
    where.locator(
        ":not([data-retained]) > [data-testid=stFileUploader] input[type=file]:not([webkitdirectory])"
    ).set_input_files([str(path) for path in paths])


def expect_ready(where: Locator) -> None:
    """The input is empty and takes the next file."""
    expect_calm(where.page)
    expect(where.get_by_test_id("stFileChip")).to_have_count(0)
    expect(where.get_by_test_id("stFileUploaderDropzone")).to_be_visible()


@pytest.fixture
def server(server: Server) -> Server:
    """The server that most tests share, with an empty store: what the tests before have stored is deleted."""
    settings = read_settings({"INSPECTOR_HOME": str(server.log.parent / "store")})
    for entry in registry.list_checkpoints(settings):
        registry.delete_checkpoint(entry.fingerprint, settings=settings)
    assert stored(server) == set()
    return server


@pytest.fixture
def sidebar(page: Page, server: Server) -> tuple[Server, Locator]:
    """The sidebar of a server with an empty store, open for files."""
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    where = page.get_by_test_id("stSidebar")
    where.get_by_text("Open your own").click()
    return server, where


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


def test_archives_of_snapshots_in_a_row(page: Page, server: Server, tmp_path: Path) -> None:
    page.goto(f"{server.url}/snapshots")
    where = page.get_by_test_id("stMain")
    expect(page.get_by_text("A training run leaves snapshots")).to_be_visible()
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
        if name == "one":  # the page has a run now, and folds its upload away
            folded = where.locator("details:not([open])").filter(has_text="Upload snapshots")
            expect(folded).to_be_visible()
            folded.get_by_text("Upload snapshots").click()
        expect_ready(where)
    assert len(stored(server)) == 6


def test_second_checkpoints_in_a_row(page: Page, server: Server, tmp_path: Path) -> None:
    page.goto(f"{server.url}/compare")
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
            expect(where.get_by_text(f"What changed outside the layers, demo-bert and {name}")
                   .or_(where.get_by_role("heading", name="Tensors", exact=True))
                   .first).to_be_visible()  # fmt: skip
        expect_ready(where)
    assert stored(server) == {"one", "two", "three"}
