"""Reports in a real browser, without any network."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from inspector.serving.trial import ROOT
from tests.browser.test_first_screen import CLASHES, SMALL

# All figures are drawn, those that have a drawing for phones by that one or not.
DRAWN_FOR = """phone => document.documentElement.dataset.drawn
  && ["overview-portrait", "sharing-graph", "classes-family"]
    .every(name => (document.getElementById("plot-" + name).layout.meta.least < 400) === phone)"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a report with all sections, from the command line."""
    folder = tmp_path_factory.mktemp("report")
    done = inspector("report", "demo-bert", "-o", str(folder / "report.zip"), home=folder)
    found = json.loads(done)
    assert found["without_pictures"] is None
    with zipfile.ZipFile(folder / "report.zip") as archive:
        archive.extractall(folder / "files")
    return folder / "files"


def inspector(*words: str, home: Path) -> str:
    """What the command line prints as JSON."""
    return subprocess.run(
        [sys.executable, "-m", "inspector", *words, "--json"], cwd=ROOT, check=True, text=True,
        stdout=subprocess.PIPE, env={**os.environ, "INSPECTOR_HOME": str(home / "home")},
    ).stdout  # fmt: skip


def size(png: bytes) -> tuple[int, int]:
    """Width and height, as the file itself says."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.parametrize(("theme", "width", "then"), [("light", 1200, 390), ("dark", 390, 1200)])
def test_a_report_opens_without_network(browser: Browser, bundle: Path, theme: str, width: int, then: int) -> None:
    context = browser.new_context(
        offline=True,
        color_scheme=theme,  # type: ignore[arg-type]
        viewport={"width": width, "height": 900},
    )
    page = context.new_page()
    asked: list[str] = []
    problems: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    address = (bundle / "report.html").as_uri()
    page.goto(address)
    expect(page.locator("html[data-drawn=true]")).to_be_attached()
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [address]
    assert page.locator(".plot > .js-plotly-plot .main-svg").count() >= 11
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 17, 23)"}[theme]
    paper = page.locator("#plot-training-schedules").evaluate("each => each._fullLayout.paper_bgcolor")
    assert paper == {"light": "#ffffff", "dark": "#0e1117"}[theme]
    # A phone scrolls tables, never the page, nor does one that is turned; and each figure is drawn for its width.
    for each in (width, then):
        page.set_viewport_size({"width": each, "height": 900})
        page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
        page.wait_for_function(DRAWN_FOR, arg=each < 640)
        assert [*page.evaluate(CLASHES), *page.evaluate(SMALL, 9)] == []
    assert problems == []
    context.close()


def test_every_figure_is_beside_it_at_print_size_with_its_title(bundle: Path) -> None:
    pngs = sorted((bundle / "figures").glob("*.png"))
    svgs = sorted((bundle / "figures").glob("*.svg"))
    assert len(pngs) == 16
    assert [each.stem for each in pngs] == [each.stem for each in svgs]
    for png in pngs:
        assert size(png.read_bytes())[0] >= 2700
    for svg in svgs:
        text = svg.read_text("utf-8")
        assert text.startswith("<svg")
        assert "demo-bert" in text
    assert (bundle / "report.pdf").read_bytes().startswith(b"%PDF-")
