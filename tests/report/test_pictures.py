"""What a report's .zip holds is opened again by others: it says where it comes from, and is the same each time."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, Literal
from xml.etree import ElementTree

import pandas as pd
import pypdf
import pytest
from PIL import Image

import inspector
from inspector.browser import Chromium, run
from inspector.report.bundle import write_bundle
from inspector.report.content import Report, ReportOptions
from inspector.report.making import make_report

TEXT = 'the <b> & "best" [MASK] of \u202e all.'
SHOWN = 'the <b> & "best" [MASK] of \\u202e all.'
SVG = "{http://www.w3.org/2000/svg}"
FAMILY = re.compile("font-family: '([^']+)'")  # the first that a text asks for
EMBEDDED = re.compile(r'font-family:"([^"]+)";[^{}]*base64,([A-Za-z0-9+/=]+)\)')
MADE = "2026-01-31 12:34 UTC"


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Report]]:
    """Make a report of a demo."""
    from inspector.settings import settings

    def made(**options: Any) -> Report:
        opened = inspector.open("demo-bert")
        report = make_report(lambda verb, _, /, **given: opened.ask(verb, **given).result, opened.opened, **options)
        return dataclasses.replace(report, made=MADE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INSPECTOR_HOME", str(tmp_path_factory.mktemp("home")))
        settings.cache_clear()
        yield made
        settings.cache_clear()


@pytest.fixture(scope="module")
def report(make: Callable[..., Report]) -> Report:
    return make(sections=("lens", "training"), setting=ReportOptions(text=TEXT))


@pytest.fixture(scope="module")
def files(report: Report) -> dict[str, bytes]:
    return unpacked(report)


@pytest.fixture(scope="module")
def whole(make: Callable[..., Report]) -> dict[str, bytes]:
    """The files of a report with all sections."""
    return unpacked(make())


def unpacked(report: Report) -> dict[str, bytes]:
    data, problem = write_bundle(report)
    assert problem is None
    archive = zipfile.ZipFile(io.BytesIO(data))
    return {name: archive.read(name) for name in archive.namelist()}


def check_facts(found: dict[str, str], report: Report) -> None:
    assert found["Checkpoint"] == "demo-bert"
    assert found["Fingerprint"] == report.context.opened.fingerprint
    assert found["Checkpoint Inspector"] == inspector.__version__
    assert "plotly " in found["Libraries"]
    section = re.fullmatch(r"/(\w+)\?checkpoint=demo-bert.*", found["Page"])
    assert section
    if section[1] == "lens":
        assert found["Text"] == SHOWN
    assert found["Command"].startswith(f"python -m inspector {section[1]} demo-bert")


def check_picture(picture: Any, report: Report) -> None:
    picture.load()
    check_facts(picture.text, report)
    assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
    assert picture.size[0] >= 2_700


def test_every_picture_says_where_it_comes_from(report, files):
    pictures = [name for name in files if name.endswith(".png")]
    assert len(pictures) == sum(len(part.figures) for part in report.parts) > 2
    for name in pictures:
        with Image.open(io.BytesIO(files[name])) as picture:
            check_picture(picture, report)
            assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > 20  # something is drawn
        root = ElementTree.fromstring(files[name.replace(".png", ".svg")])
        assert [each.tag for each in root[:4]] == [f"{SVG}{tag}" for tag in ("title", "desc", "metadata", "style")]
        facts = json.loads(root[2].text or "")
        check_facts(facts, report)
        assert (root[0].text, root[1].text) == (facts["Title"], facts["Description"])
        families = {family for each in root.iter(f"{SVG}text") for family in FAMILY.findall(each.get("style", ""))}
        embedded = dict(EMBEDDED.findall(root[3].text or ""))
        assert embedded.keys() == families != set()
        assert all(base64.b64decode(font).startswith(b"wOF2") for font in embedded.values())


def test_every_table_says_where_it_comes_from(report, files):
    tables = [name for name in files if name.endswith(".csv")]
    assert len(tables) == sum(len(part.tables) for part in report.parts) > 2
    for name in tables:
        described = json.loads(files[f"{name}-metadata.json"])
        assert described["url"] == name.partition("/")[2]
        check_facts(described["dc:source"], report)
        frame = pd.read_csv(io.BytesIO(files[name]))
        columns = described["tableSchema"]["columns"]
        assert [each["titles"] for each in columns] == list(frame.columns)
        for each in columns:
            if each["datatype"] in ("integer", "double"):
                assert pd.api.types.is_numeric_dtype(frame[each["titles"]])


def test_the_same_report_is_the_same_bytes(report, files):
    assert unpacked(report) == files
    metadata = pypdf.PdfReader(io.BytesIO(files["report.pdf"])).metadata
    assert metadata
    for date in (metadata.creation_date, metadata.modification_date):
        assert date
        assert date.strftime("%Y-%m-%d %H:%M UTC") == MADE
    ids = [set(re.findall(rb'id="([^"]+)"', files[name])) for name in files if name.endswith(".svg")]
    assert len(set.union(*ids)) == sum(map(len, ids))  # two drawings can stand in one page


async def _saved(page: str, theme: Literal["light", "dark"], name: str) -> tuple[str, bytes]:
    """The picture that the page's own button saves: its file's name, and its bytes."""
    async with Chromium() as chromium:
        tab = await chromium.tab()
        await tab.prefer(theme)
        await tab.go(page)
        await tab.until("document.documentElement?.dataset.drawn")
        await tab.value("saveFile = (file, name) => { window.saved = [file, name]; }")
        await tab.value(f"document.querySelector('#plot-{name} [data-title=\"Download as PNG\"]').click()")
        await tab.until("window.saved")
        data = await tab.value("saved[0].arrayBuffer().then((bytes) => [...new Uint8Array(bytes)])")
        return await tab.value("saved[1]"), bytes(data)


def test_a_page_saves_pictures_on_white_under_names_of_their_own(report, files, tmp_path):
    path = tmp_path / "report.html"
    path.write_bytes(files["report.html"])
    names = set()
    asked: tuple[tuple[Literal["light", "dark"], str], ...]
    asked = (("dark", "lens-heatmap"), ("light", "lens-heatmap"), ("dark", "training-schedules"))
    for theme, name in asked:
        saved, data = run(_saved(path.as_uri(), theme, name))
        assert re.fullmatch(rf"demo-bert-{name}-[0-9a-f]{{8}}\.png", saved)
        names.add(saved)
        with Image.open(io.BytesIO(data)) as picture:
            check_picture(picture, report)
            pixels = picture.convert("L")
        assert pixels.getpixel((5, 5)) == 255
        assert min(pixels.crop((30, 30, 1500, 110)).tobytes()) < 80  # the title, in dark ink
    path.write_bytes(files["report.html"].replace(b"[MASK]", b"another"))
    saved, _ = run(_saved(path.as_uri(), "dark", "lens-heatmap"))
    assert saved not in names


def sizes_of_letters(page: pypdf.PageObject) -> set[float]:
    """The sizes in points of all letters that are drawn."""
    found: set[float] = set()

    def note(text: str, around: list[float], place: list[float], _: object, size: float) -> None:
        if text.strip():
            found.add(round(size * math.hypot(*place[2:4]) * math.hypot(*around[2:4]), 1))

    page.extract_text(visitor_text=note)
    return found


def test_a_pdf_is_read_on_paper(whole):
    """Its first page says what matters, no page is nearly empty, and nothing is too small."""
    pages = pypdf.PdfReader(io.BytesIO(whole["report.pdf"])).pages
    texts = [page.extract_text() for page in pages]
    assert "Sound. None of" in texts[0]
    assert "What is in this checkpoint?" in texts[0]
    assert min(map(len, texts[:-1])) > 200  # a page with a figure has few letters
    assert "To create this report again" in texts[-1]  # no command stands alone
    assert [round(float(each)) for each in pages[0].mediabox[2:]] == [595, 842]
    for number, page in enumerate(pages, start=1):
        assert min(sizes_of_letters(page)) >= 8, number
    heads = [text for text in texts if "shape" in text and "dtype" in text and "file" in text]
    assert len(heads) > 1  # the head of a table that goes on is there again


# Words of a table's cells that stand in more than one line, and what is wider than the page.
BROKEN = """(() => {
  const broken = [];
  for (const cell of document.querySelectorAll("th, td, dt")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/\\d+\\.\\d+|[^\\s.,:;\\/_()[\\]–—-]+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((each) => each.top)).size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
})()"""
OVER = """[...document.querySelectorAll(".scroll, .plot, main *")].filter((each) =>
  each.getBoundingClientRect().right > innerWidth + 1 && !each.closest("svg")
  || each.matches(".scroll, .plot") && each.scrollWidth > each.clientWidth + 1
  || each.matches("svg .gtitle, svg .gtitle-subtitle") && each.getBoundingClientRect().right > innerWidth + 1
).map((each) => each.outerHTML.slice(0, 100))"""


async def _laid_out(page: str, *, width: int, media: Literal["", "print"]) -> tuple[list[str], list[str]]:
    async with Chromium() as chromium:
        tab = await chromium.tab()
        await tab.prefer("light", media=media)
        await tab.resize(width, 900)
        await tab.go(page)
        await tab.until("document.documentElement?.dataset.drawn")
        if media:
            await tab.value("inspectorPaper().then(() => null)")
        return await tab.value(BROKEN), await tab.value(OVER)


@pytest.mark.parametrize(("width", "media"), [(680, "print"), (390, "")])
def test_paper_and_phones_break_no_word_and_cut_nothing(whole, tmp_path, width, media):
    path = tmp_path / "report.html"
    path.write_bytes(whole["report.html"])
    broken, over = run(_laid_out(path.as_uri(), width=width, media=media))
    assert over == []
    if media:
        assert broken == []
