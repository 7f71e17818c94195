"""The Checks page in a real browser: a sound demo, a damaged upload, and what leads on from it."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from safetensors.numpy import load_file, save

from inspector.demo import DEMOS
from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page

DENSE = "bert.encoder.layer.0.output.dense.weight"


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """demo-bert with one NaN, packed."""
    folder = DEMOS["demo-bert"].folder
    state = load_file(folder / "model.safetensors")
    state[DENSE][2, 3] = float("nan")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in folder.iterdir():
            if file.suffix in (".json", ".txt"):
                archive.write(file, file.name)
        archive.writestr("model.safetensors", save(state))
    target = tmp_path_factory.mktemp("uploads") / "damaged.zip"
    target.write_bytes(packed.getvalue())
    return target


def test_a_sound_demo_and_a_damaged_upload(page: Page, server: Server, damaged: Path) -> None:
    page.goto(f"{server.url}/checks?checkpoint=demo-bert")
    expect_page(page, "checks", "demo-bert")
    expect(page.get_by_test_id("stAlert")).to_contain_text("Sound.")
    expect(page.get_by_text("Next step")).to_have_count(0)

    page.get_by_test_id("stSidebar").get_by_text("Open your own").click()
    page.get_by_test_id("stSidebar").locator("input[type=file]").set_input_files(str(damaged))
    expect_page(page, "checks", "damaged")
    expect(page.get_by_test_id("stAlert")).to_contain_text("Broken. 1 of")
    expect(page.get_by_text("broken · critical")).to_be_visible()
    page.get_by_text("Evidence (1)").first.click()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect_calm(page)

    page.get_by_role("tab", name="Export").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="All checks: JSON").click()
    found = json.loads(waiting.value.path().read_text("utf-8"))
    (bad,) = [check for check in found["checks"] if check["status"] == "fail"]
    assert [(each["subject"], each["count"]) for each in bad["evidence"]] == [(DENSE, 1)]

    page.get_by_test_id("stMain").get_by_role("button", name="See more: Overview").click()
    expect_page(page, "overview", "damaged")
    expect(page).to_have_url(re.compile(rf"find={re.escape(DENSE)}"))
    expect(page.get_by_text("1 of 78 stored tensors.")).to_be_visible()
