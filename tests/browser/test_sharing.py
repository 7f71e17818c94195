"""The sharing page in a real browser: clicks, downloads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import click_mark, expect_calm, expect_page, middle, save_figure

SVG = "{http://www.w3.org/2000/svg}"
GROUNDS = {"light": 255, "dark": 14}  # how much red there is in it
TITLES = ("Names and tensors of demo-bert", "Parameters of demo-bert")


def show(page: Page, server: Server) -> Page:
    page.goto(f"{server.url}/sharing")
    expect_page(page, "sharing", "demo-bert")
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    return page


@pytest.mark.parametrize("scheme", GROUNDS)
def test_a_page_follows_the_color_scheme_and_its_files_are_light_and_tell_their_title(
    scheme: str, server: Server, open_browser: Callable[..., Page]
) -> None:
    """The page's ground and its figures' ink; a figure arrives on white paper, whatever the page's colors."""
    red = GROUNDS[scheme]
    page = show(open_browser(color_scheme=scheme), server)
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    color = page.get_by_test_id("stApp").evaluate("app => getComputedStyle(app).backgroundColor")
    assert int(re.findall(r"\d+", color)[0]) == red
    ink = page.locator(".js-plotly-plot .gtitle").first.evaluate("t => getComputedStyle(t).fill")
    assert abs(int(re.findall(r"\d+", ink)[0]) - red) > 128
    download = save_figure(page, "PNG", TITLES[0])
    assert re.fullmatch(r"Names-and-tensors-of-demo-bert-[0-9a-f]{8}\.png", download.suggested_filename)
    with Image.open(download.path()) as picture:
        assert picture.format == "PNG"
        assert picture.width == 2_700  # nine inches at 300 dpi
        pixels = np.asarray(picture.convert("RGB")).astype(int)
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        said = picture.text  # pyright: ignore[reportAttributeAccessIssue]
    assert (said["Title"], said["Checkpoint"], said["Page"]) == (
        TITLES[0],
        "demo-bert",
        "/sharing?checkpoint=demo-bert",
    )
    assert pixels[5, 5].tolist() == [255, 255, 255]
    assert (pixels[30:110, :1500].max(axis=2) < 128).any()  # the title is written there
    assert np.median(pixels) > 230, "a light figure: what is not text lies on white or on a pale box"
    ink = page.locator(".js-plotly-plot .gtitle").first.evaluate("t => getComputedStyle(t).fill")
    assert abs(int(re.findall(r"\d+", ink)[0]) - red) > 128, "the page's own figure is as it was"
    for title in TITLES:
        if title == TITLES[1]:
            page.get_by_role("tab", name="Where the parameters are").click()
        download = save_figure(page, "SVG", title)
        assert re.fullmatch(rf"{title.replace(' ', '-')}-[0-9a-f]{{8}}\.svg", download.suggested_filename)
        root = ElementTree.fromstring(Path(download.path()).read_text("utf-8"))
        assert root.tag == f"{SVG}svg"
        assert root.get("width") == "900"
        facts = json.loads(root.findtext(f"{SVG}metadata", ""))
        assert facts["Fingerprint"] == said["Fingerprint"]
        assert root.findtext(f"{SVG}title") == facts["Title"] == title
        assert "base64,d09GMg" in root.findtext(f"{SVG}style", "")  # a font: "wOF2"
        texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
        assert title in texts
        assert any("word_embeddings.weight" in text for text in texts)


def test_a_row_tells_all_of_it_when_hovered_and_what_it_is_when_clicked(page: Page, server: Server) -> None:
    show(page, server)
    chart = page.locator(".st-key-sharing_graph .js-plotly-plot")
    mark = chart.locator(".barlayer .trace").nth(0).locator(".point").nth(0)
    page.mouse.move(*middle(mark))
    hover = chart.locator(".hoverlayer .hovertext")
    expect(hover).to_contain_text("bert.embeddings.word_embeddings.weight")
    expect(hover).to_contain_text("in memory: storage 0, offset 0 B")
    expect(hover).to_contain_text("from byte")

    expect(page.get_by_role("heading", name="Properties")).to_have_count(0)
    click_mark(mark)
    expect(page.get_by_role("row", name="Verdict tied")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("In memory storage 0, offset 0"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("In the file model.safetensors"))).to_be_visible()
    click_mark(chart.locator(".barlayer .trace").nth(2).locator(".point").nth(1))
    expect(page.get_by_role("row", name="Name cls.predictions.bias")).to_be_visible()


def test_a_table_is_copied_as_text_once_its_menu_is_open(page: Page, server: Server) -> None:
    show(page, server)
    page.get_by_role("tab", name="Names").click()
    tables = page.get_by_text("booktabs")
    expect(page.get_by_role("button", name="Copy", exact=True).first).to_be_visible()
    expect(tables).to_have_count(0)
    expect_calm(page)
    page.get_by_role("button", name="Copy", exact=True).first.click()
    code = page.get_by_test_id("stCode")
    expect(code.filter(has_text=r"\end{tabular}")).to_contain_text(r"bert.embeddings.word\_embeddings.weight")
    expect(code.filter(has_text="| --- |").or_(code.filter(has_text="|---|"))).to_contain_text("Fingerprint")
