"""What a report's .zip holds is opened again by others: it says where it comes from, and is the same each time."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import zipfile
from xml.etree import ElementTree

import pandas as pd
import pypdf
import pytest
from PIL import Image

import inspector
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


def test_a_label_that_is_no_latin_text_stays_whole():
    data = io.BytesIO()
    Image.new("RGB", (2, 2)).save(data, "PNG")
    with Image.open(io.BytesIO(label_png(data.getvalue(), {"Text": "Öß 中 👋\x00"}))) as picture:
        picture.load()
        assert picture.info["Text"] == "Öß 中 👋\\x00"
