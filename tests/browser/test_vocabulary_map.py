"""The vocabulary map in a real browser, on a page of its own: what it paints and reports."""

from __future__ import annotations

import base64
import io
import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from inspector.analyses.vocabulary_map import component
from inspector.plotting.theme import DARK, LIGHT, Theme
from tools.bench.vocabulary_map import MOUNT

WIDTH, HEIGHT = 800, 500
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


def show(page: Page, *, theme: Theme = LIGHT, points: pd.DataFrame | None = None, **options: Any) -> None:
    """Draw points as the page does: the state first, then the points that it speaks of."""
    packed = component.pack(frame_of_points() if points is None else points)
    data = component.state(packed.digest, title="demo: map", theme=theme, height=HEIGHT, **options)
    page.evaluate("(data) => { window.update(data); }", data)
    page.evaluate("(text) => { window.bring(text); }", base64.b64encode(packed.data).decode())
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
    assert page.evaluate("window.reported") == [["hidden", ["padding"]]]
    assert click(page, *place_of(0, 0))[-1] == ["clicked", 15]  # the word that lay below


def test_layers_of_a_link_are_off_from_the_start(page: Page) -> None:
    show(page, hidden=["padding"])
    button = page.get_by_role("button", name="padding (1)")
    assert button.get_attribute("aria-pressed") == "false"
    assert click(page, *place_of(0, 0)) == [["clicked", 15]]


def test_search_results_are_ringed_and_counted(page: Page) -> None:
    show(page, found=[11, 19])
    assert color_at(page, *place_of(1, 1)) == LIGHT.ink
    assert "2 found" in page.locator(".hint").inner_text()


def test_lines_lead_to_the_true_neighbors(page: Page) -> None:
    show(page, selected=19, neighbors=[11])  # from (1, 1) to (-1, -1)
    assert color_at(page, *place_of(-1, -1)) == LIGHT.accent
    x, y = place_of(0.5, 0.5)
    around = {color_at(page, x + dx, y + dx) for dx in (-1, 0, 1)}
    assert around != {LIGHT.page}


def test_under_trained_tokens_are_a_layer(page: Page) -> None:
    points = frame_of_points()
    points["flagged"] = points["token_id"] == 19
    plain = LIGHT.kinds["word"]
    show(page, points=points)
    x, y = place_of(1, 1)
    shown = page.locator(".stage canvas").screenshot()
    page.get_by_role("button", name="under-trained (1)").click()
    page.evaluate(SETTLED)
    assert page.locator(".stage canvas").screenshot() != shown
    assert page.evaluate("window.reported") == [["hidden", ["under-trained"]]]
    assert color_at(page, x, y) not in {LIGHT.page, plain}  # words are translucent


def test_numbers_become_colors_of_the_ramp(page: Page) -> None:
    points = frame_of_points()
    points["trust"] = np.linspace(0, 1, len(points))
    points.loc[5, "trust"] = np.nan
    show(page, points=points, color="trust")
    legend = page.get_by_role("group", name="Color legend")
    assert legend.inner_text().split("\n") == [
        "true neighbors kept", "0 %", "100 %", "not measured (1)",
    ]  # fmt: skip
    low, high = (
        [int(color_at(page, *place_of(*place))[1:][i : i + 2], 16) for i in (0, 2, 4)] for place in ((-1, -1), (1, 1))
    )
    first, last = component.RAMPS["light"][0], component.RAMPS["light"][-1]
    red = [int(color[1:3], 16) for color in (first, last)]
    assert low[0] > red[0] - 60
    assert high[0] < red[1] + 90


SCRIPTS = (
    ("house", "word", "Latin"),
    ("␣дом", "word", "Cyrillic"),
    ("##家", "subword", "Han"),
    ("かな", "word", "Kana"),
    ("ﬁn", "word", "Latin"),
    ("हिन्दी", "word", "Devanagari"),
    ("2nd", "word", "Latin"),
    ("1984", "word", "digits"),
    ("٣", "word", "digits"),
    ("##!?", "subword", "punctuation, symbols"),
    ("##", "word", "punctuation, symbols"),
    ("␣<0xE2><0x80>", "word", "bytes"),
    ("<0x0A>", "byte", "bytes"),
    ("ᚠ", "word", "other scripts"),
    ("[CLS]", "special", "not text"),
)


def test_tokens_are_told_apart_by_script(page: Page) -> None:
    """One token at a time, so that the legend speaks of it alone."""
    for token, kind, script in SCRIPTS:
        points = frame_of_points().iloc[[9]].assign(token=token, kind=kind)
        show(page, points=points, color="script")
        legend = page.get_by_role("group", name="Color legend")
        assert (token, legend.inner_text()) == (token, f"{script} (1)")


def test_a_script_can_be_hidden(page: Page) -> None:
    points = frame_of_points()
    points.loc[9, "token"] = "дом"
    show(page, points=points, color="script")
    page.get_by_role("button", name="Cyrillic (1)").click()
    page.evaluate(SETTLED)
    assert color_at(page, *place_of(1, 1)) == LIGHT.page
    assert color_at(page, *place_of(-1, 1)) != LIGHT.page


def chosen(page: Page) -> list[int]:
    """The token ids of the last choice that was reported."""
    choices = [value for name, value in page.evaluate("window.reported") if name == "chosen"]
    return np.frombuffer(base64.b64decode(choices[-1]), "<i4").tolist()


def draw(page: Page, *places: tuple[float, float]) -> None:
    """Drag along places of the canvas."""
    box = page.locator(".stage canvas").bounding_box()
    assert box is not None
    first, *others = [(box["x"] + x, box["y"] + y) for x, y in places]
    page.mouse.move(*first)
    page.mouse.down()
    for place in others:
        page.mouse.move(*place, steps=4)
    page.mouse.up()
    page.evaluate(SETTLED)


def test_a_lasso_chooses_what_lies_inside(page: Page) -> None:
    show(page)
    page.get_by_role("button", name="Lasso").click()
    # A line around the right column's lower two and the middle's lowest.
    draw(page, place_of(-0.2, -1.1), place_of(1.1, -1.1), place_of(1.1, 0.3), place_of(0.7, 0.2))
    assert chosen(page) == [14, 17, 18]
    assert "3 chosen" in page.locator(".hint").inner_text()
    assert not [name for name, _ in page.evaluate("window.reported") if name == "clicked"]


def test_a_box_chooses_shown_tokens_alone(page: Page) -> None:
    show(page, hidden=["padding"])
    page.get_by_role("button", name="Box").click()
    draw(page, place_of(-0.5, 1.1), place_of(0.5, -0.5))
    assert chosen(page) == [15, 16]
    page.locator(".stage canvas").focus()
    page.keyboard.press("Escape")
    assert chosen(page) == []
    assert page.get_by_role("button", name="Move").get_attribute("aria-pressed") == "true"


def test_shift_draws_a_lasso_without_changing_the_tool(page: Page) -> None:
    show(page)
    page.keyboard.down("Shift")
    draw(page, place_of(0.5, 0.5), place_of(1.1, 0.5), place_of(1.1, 1.1), place_of(0.5, 1.1))
    page.keyboard.up("Shift")
    assert chosen(page) == [19]


def test_the_keyboard_reaches_everything(page: Page) -> None:
    show(page)
    canvas = page.locator(".stage canvas")
    assert "10 tokens" in (canvas.get_attribute("aria-label") or "")
    tools = page.get_by_role("toolbar", name="Map tools").get_by_role("button")
    tools.first.focus()
    page.keyboard.press("ArrowLeft")
    expect(tools.last).to_be_focused()
    page.keyboard.press("Tab")  # the tools are one stop
    expect(canvas).to_be_focused()
    page.keyboard.press("Enter")  # the token nearest to the center
    assert page.evaluate("window.reported") == [["clicked", 0]]
    assert "Selected: <b>pad</b>" in (canvas.get_attribute("aria-label") or "")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate("window.reported")[-1] == ["clicked", 18]  # the word at (1, 0)
    page.keyboard.press("Escape")
    assert page.evaluate("window.reported")[-1] == ["clicked", -1]
    page.keyboard.press("0")
    page.keyboard.press("a")
    assert chosen(page) == [0, *range(11, 20)]


def test_two_fingers_zoom(page: Page) -> None:
    show(page)
    before = page.locator(".stage canvas").screenshot()
    page.evaluate(
        """() => {
          const canvas = document.querySelector(".stage canvas");
          canvas.setPointerCapture = () => {};
          const box = canvas.getBoundingClientRect();
          const send = (name, pointerId, x) => canvas.dispatchEvent(new PointerEvent(name, {
            pointerId, clientX: box.left + x, clientY: box.top + 250, bubbles: true,
          }));
          send("pointerdown", 1, 350);
          send("pointerdown", 2, 450);
          for (let i = 1; i <= 10; i++) {
            send("pointermove", 1, 350 - 10 * i);
            send("pointermove", 2, 450 + 10 * i);
          }
          send("pointerup", 1, 250);
          send("pointerup", 2, 550);
        }"""
    )
    page.evaluate(SETTLED)
    assert page.locator(".stage canvas").screenshot() != before
    assert page.evaluate("window.reported") == []
    # Fingers went from 100 to 300 pixels apart: three times as near, around the middle.
    x, y = place_of(0, 0)
    assert click(page, x, y) == [["clicked", 0]]
    right = (HEIGHT - 60) / 2 * 3
    assert x + right > WIDTH  # the right column has left the picture
    assert color_at(page, *place_of(1, 0)) == LIGHT.page


def cloud() -> pd.DataFrame:
    points = frame_of_points()
    points["z"] = np.array([0, *(0.5 * n for n in (-1, 0, 1, 1, 0, -1, -1, 1, 0))], np.float32)
    return points


def test_a_cloud_is_turned_and_its_points_are_clicked(page: Page) -> None:
    show(page, points=cloud())
    middle = (WIDTH / 2, HEIGHT / 2)
    first = page.locator(".stage canvas").screenshot()
    draw(page, middle, (WIDTH / 2 + 120, HEIGHT / 2 + 40))
    assert page.locator(".stage canvas").screenshot() != first
    assert page.evaluate("window.reported") == []
    assert "turn" in (page.locator(".stage canvas").get_attribute("aria-label") or "")
    page.locator(".stage canvas").focus()
    page.keyboard.press("a")
    assert chosen(page) == [0, *range(11, 20)]
    page.keyboard.press("0")
    page.keyboard.press("Escape")
    page.evaluate(SETTLED)
    assert page.locator(".stage canvas").screenshot() == first


def test_the_picture_holds_map_title_legend_and_where_it_comes_from(page: Page) -> None:
    show(page, facts={"Checkpoint": "demo", "Text": "ß 中 👋"})
    with page.expect_download() as waiting:
        page.get_by_role("button", name="PNG").click()
    download = waiting.value
    assert re.fullmatch(r"demo-map-[0-9a-f]{8}\.png", download.suggested_filename)
    with Image.open(download.path()) as opened:
        picture = opened.convert("RGB")
        assert opened.text == {  # pyright: ignore[reportAttributeAccessIssue]
            "Title": "demo: map", "Checkpoint": "demo", "Text": "ß 中 👋", "Description": ""
        }  # fmt: skip
        assert opened.info["dpi"] == pytest.approx((300, 300), abs=0.1)
    fine = picture.width / WIDTH
    assert picture.width == 2400  # eight inches of print
    assert picture.height > fine * HEIGHT
    x, y = place_of(0, 0)
    top = round(42 * fine)  # the title's line
    padding = tuple(int(LIGHT.kinds["padding"][i : i + 2], 16) for i in (1, 3, 5))
    assert picture.getpixel((round(fine * x), round(fine * y) + top)) == padding
    head = np.asarray(picture.crop((0, 0, picture.width, top)))
    below = (0, round(top + fine * HEIGHT), picture.width, picture.height)
    foot = np.asarray(picture.crop(below))
    assert head.min() < 100  # something dark is written there
    assert (foot == padding).all(axis=2).any()  # padding's mark in the legend


def test_the_svg_keeps_text_as_text(page: Page) -> None:
    show(page, found=[19], color="norm", facts={"Checkpoint": "demo"})
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG").click()
    assert re.fullmatch(r"demo-map-[0-9a-f]{8}\.svg", waiting.value.suggested_filename)
    root = ET.parse(waiting.value.path()).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert json.loads(root.findtext(f"{space}metadata", ""))["Checkpoint"] == "demo"
    texts = {node.text for node in root.iter(f"{space}text")}
    assert {"demo: map", "<b>pad</b>", "word19", "word (9)", "norm"} <= texts
    (image,) = root.iter(f"{space}image")
    assert (image.get("href") or "").startswith("data:image/png;base64,")
