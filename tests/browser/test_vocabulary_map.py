"""The vocabulary map in a real browser, on a page of its own: what it paints and reports."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import Page

from inspector.figures import DARK, LIGHT, Theme
from inspector.figures import vocabulary_map as component

WIDTH, HEIGHT = 800, 500

MOUNT = """async ([html, css, script]) => {
  const root = document.getElementById("root");
  root.innerHTML = html;
  const style = document.createElement("style");
  style.textContent = css;
  root.append(style);
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const module = await import(url);
  window.reported = [];
  window.update = (data) => module.default({
    data,
    parentElement: root,
    setTriggerValue: (name, value) => window.reported.push([name, value]),
  });
}"""
SETTLED = """async () => {
  const canvas = document.querySelector(".stage canvas");
  let before = -1;
  while (canvas.dataset.drawn !== before) {
    before = canvas.dataset.drawn;
    await new Promise((done) => setTimeout(done, 250));
  }
}"""


def frame_of_points() -> pd.DataFrame:
    """Nine words on a grid of -1, 0, 1, and padding under the word in the middle's place."""
    places = [(x, y) for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0)]
    return pd.DataFrame(
        {
            "token_id": [0, *range(11, 20)],
            "token": ["<b>pad</b>", *(f"word{n}" for n in range(11, 20))],
            "x": np.array([0.0, *(x for x, _ in places)], dtype=np.float32),
            "y": np.array([0.0, *(y for _, y in places)], dtype=np.float32),
            "norm": np.float32(1.5),
            "kind": ["padding", *["word"] * 9],
        }
    )


def place_of(x: float, y: float) -> tuple[float, float]:
    """Where the map must draw a point at first: the grid fills the height less 60 pixels."""
    scale = (HEIGHT - 60) / 2
    return WIDTH / 2 + x * scale, HEIGHT / 2 - y * scale


@pytest.fixture
def page(page: Page) -> Page:
    """A page with the component alone, which no data has reached yet."""
    page.set_viewport_size({"width": WIDTH + 2, "height": 800})
    page.set_content(f"<body style='margin:0'><div id='root' style='width:{WIDTH + 2}px'></div>")
    page.evaluate(MOUNT, [component.html(), component.css(), component.javascript()])
    return page


def show(page: Page, *, theme: Theme = LIGHT, **options: Any) -> None:
    data = component.payload(
        frame_of_points(), title="demo: map", theme=theme, height=HEIGHT, **options
    )
    page.evaluate("(data) => { window.update(data); }", data)
    page.evaluate(SETTLED)


def color_at(page: Page, x: float, y: float) -> str:
    picture = Image.open(io.BytesIO(page.locator(".stage canvas").screenshot())).convert("RGB")
    return "#{:02x}{:02x}{:02x}".format(*picture.getpixel((round(x), round(y))))  # type: ignore[misc]


def click(page: Page, x: float, y: float) -> list[Any]:
    page.locator(".stage canvas").click(position={"x": x, "y": y})
    return page.evaluate("window.reported")


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_padding_is_painted_on_top_and_words_around_it(page: Page, theme: Theme) -> None:
    show(page, theme=theme)
    assert color_at(page, *place_of(0, 0)) == theme.kinds["padding"]
    assert color_at(page, *place_of(0.5, 0.5)) == theme.page
    for x, y in ((-1, -1), (1, 1), (-1, 0)):
        assert color_at(page, *place_of(x, y)) != theme.page


def test_a_click_reports_the_token_and_a_click_beside_it_ends_the_selection(page: Page) -> None:
    show(page)
    assert click(page, *place_of(1, 1)) == [["clicked", 19]]
    assert click(page, *place_of(0, 0))[-1] == ["clicked", 0]  # padding, not the word below
    assert click(page, *place_of(0.5, 0.5))[-1] == ["clicked", -1]


def test_hover_shows_the_token_as_text_not_as_markup(page: Page) -> None:
    show(page)
    box = page.locator(".stage canvas").bounding_box()
    assert box is not None
    x, y = place_of(0, 0)
    page.mouse.move(box["x"] + x, box["y"] + y)
    tip = page.locator(".tip")
    assert tip.inner_text() == "<b>pad</b>\nid 0 · padding\nnorm 1.500"
    assert tip.locator("b").count() == 0
    page.mouse.move(box["x"] + place_of(0.5, 0.5)[0], box["y"] + place_of(0.5, 0.5)[1])
    assert tip.is_hidden()


def test_zoom_and_place_survive_a_rerun_of_the_script(page: Page) -> None:
    show(page)
    box = page.locator(".stage canvas").bounding_box()
    assert box is not None
    x, y = place_of(1, 1)
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.wheel(0, -400)
    page.evaluate(SETTLED)
    show(page, selected=11)  # a rerun that brings the same points and another selection
    assert click(page, x, y) == [["clicked", 19]]  # the wheel keeps what is under the pointer
    assert click(page, *place_of(0, 0))[-1] == ["clicked", -1]  # the middle has moved away
    page.get_by_role("button", name="Reset").click()
    page.evaluate(SETTLED)
    assert click(page, *place_of(0, 0))[-1] == ["clicked", 0]


def test_dragging_moves_the_map_and_selects_nothing(page: Page) -> None:
    show(page)
    box = page.locator(".stage canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 350, box["y"] + 320, steps=4)
    page.mouse.up()
    page.evaluate(SETTLED)
    assert page.evaluate("window.reported") == []
    x, y = place_of(0, 0)
    assert click(page, x + 50, y + 20) == [["clicked", 0]]


def test_the_legend_hides_a_kind(page: Page) -> None:
    show(page)
    button = page.get_by_role("button", name="padding (1)")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    page.evaluate(SETTLED)
    assert button.get_attribute("aria-pressed") == "false"
    assert click(page, *place_of(0, 0)) == [["clicked", 15]]  # the word that lay below


def test_search_results_are_ringed_and_counted(page: Page) -> None:
    show(page, highlighted=[11, 19])
    assert color_at(page, *place_of(1, 1)) == LIGHT.ink
    assert "2 found" in page.locator(".hint").inner_text()


def test_the_keyboard_reaches_everything(page: Page) -> None:
    show(page)
    canvas = page.locator(".stage canvas")
    assert "10 tokens" in (canvas.get_attribute("aria-label") or "")
    canvas.focus()
    page.keyboard.press("Enter")  # the token nearest to the centre
    assert page.evaluate("window.reported") == [["clicked", 0]]
    assert "Selected: <b>pad</b>" in (canvas.get_attribute("aria-label") or "")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate("window.reported")[-1] == ["clicked", 18]  # the word at (1, 0)
    page.keyboard.press("Escape")
    assert page.evaluate("window.reported")[-1] == ["clicked", -1]


def test_the_picture_holds_map_title_and_legend(page: Page) -> None:
    show(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="PNG").click()
    download = waiting.value
    assert download.suggested_filename == "demo-map.png"
    picture = Image.open(download.path()).convert("RGB")
    assert picture.width == 2 * WIDTH
    assert picture.height > 2 * HEIGHT
    x, y = place_of(0, 0)
    top = 2 * 42  # the title's line, at twice the density
    padding = tuple(int(LIGHT.kinds["padding"][i : i + 2], 16) for i in (1, 3, 5))
    assert picture.getpixel((round(2 * x), round(2 * y) + top)) == padding
    head = np.asarray(picture.crop((0, 0, picture.width, top)))
    foot = np.asarray(picture.crop((0, top + 2 * HEIGHT, picture.width, picture.height)))
    assert head.min() < 100  # something dark is written there
    assert (foot == padding).all(axis=2).any()  # padding's mark in the legend
