"""What a report's .zip holds is opened again by others: it says where it comes from, and is the same each time."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import re
import zipfile
from typing import Literal
from xml.etree import ElementTree

import pandas as pd
import pypdf
import pytest
from PIL import Image

import inspector
from inspector.browser import Chromium, run
from inspector.report.bundle import write_bundle
from inspector.report.content import Report, ReportOptions
from inspector.report.labeling import label_png
from inspector.report.making import make_report

TEXT = 'the <b> & "best" [MASK] of \u202e all.'
SHOWN = 'the <b> & "best" [MASK] of \\u202e all.'
SVG = "{http://www.w3.org/2000/svg}"
MADE = "2026-01-31 12:34 UTC"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    from inspector.settings import settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INSPECTOR_HOME", str(tmp_path_factory.mktemp("home")))
        settings.cache_clear()
        opened = inspector.open("demo-bert")
        made = make_report(
            lambda verb, _, /, **given: opened.ask(verb, **given).result,
            opened.opened,
            sections=("lens", "training"),
            setting=ReportOptions(text=TEXT),
        )
        settings.cache_clear()
    return dataclasses.replace(made, made=MADE)


@pytest.fixture(scope="module")
def files(report: Report) -> dict[str, bytes]:
    return unpacked(report)


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


def test_every_picture_says_where_it_comes_from(report, files):
    pictures = [name for name in files if name.endswith(".png")]
    assert len(pictures) == sum(len(part.figures) for part in report.parts) > 2
    for name in pictures:
        with Image.open(io.BytesIO(files[name])) as picture:
            picture.load()
            check_facts(picture.text, report)  # pyright: ignore[reportAttributeAccessIssue]
            assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
            assert picture.size[0] >= 2_700
            assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > 20  # something is drawn
        root = ElementTree.fromstring(files[name.replace(".png", ".svg")])
        assert [each.tag for each in root[:3]] == [f"{SVG}{tag}" for tag in ("title", "desc", "metadata")]
        facts = json.loads(root[2].text or "")
        check_facts(facts, report)
        assert (root[0].text, root[1].text) == (facts["Title"], facts["Description"])


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
        await tab.value("Plotly.downloadImage = (what, how) => { window.saved = [how, Plotly.toImage(what, how)]; }")
        await tab.value(f"document.querySelector('#plot-{name} [data-title=\"Download as PNG\"]').click()")
        return await tab.value("saved[0].filename"), base64.b64decode((await tab.value("saved[1]")).partition(",")[2])


def test_a_page_saves_pictures_on_white_under_names_of_their_own(files, tmp_path):
    path = tmp_path / "report.html"
    path.write_bytes(files["report.html"])
    names = set()
    for theme, name in (("dark", "lens-heatmap"), ("light", "lens-heatmap"), ("dark", "training-schedules")):
        saved, data = run(_saved(path.as_uri(), theme, name))
        assert re.fullmatch(rf"demo-bert-{name}-[0-9a-f]{{8}}", saved)
        names.add(saved)
        with Image.open(io.BytesIO(data)) as picture:
            pixels = picture.convert("L")
        assert pixels.getpixel((5, 5)) == 255
        assert pixels.crop((30, 30, 1500, 110)).getextrema()[0] < 80  # the title, in dark ink
    path.write_bytes(files["report.html"].replace(b"[MASK]", b"another"))
    saved, _ = run(_saved(path.as_uri(), "dark", "lens-heatmap"))
    assert saved not in names


def test_a_label_that_is_no_latin_text_stays_whole():
    data = io.BytesIO()
    Image.new("RGB", (2, 2)).save(data, "PNG")
    with Image.open(io.BytesIO(label_png(data.getvalue(), {"Text": "Öß 中 👋\x00"}))) as picture:
        picture.load()
        assert picture.info["Text"] == "Öß 中 👋\\x00"
