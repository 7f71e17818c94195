"""The first screen of every page: its picture whole, not much below, no text over text, and no barrier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from inspector.catalog import PAGES
from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, follow

HEIGHT = 800
HEADING, LONGEST = 64, 1_800  # pixels
WHOLE = 0.9  # of the picture
WIDE, FOLD = 1280, 720  # pixels: on a screen so wide, a picture ends here
PHONE, ZOOMED = 390, 640  # pixels: a phone, and WIDE at 200 %
AGENT = "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36"
PLOT, PLACE, MAP = ".js-plotly-plot", ".st-key-picture", ".stage canvas"
CARDS = ".st-key-questions [data-testid=stHorizontalBlock]"  # the first of them
# page -> its picture, and inputs without which it has none
PICTURES = {
    "report": (PLACE, ""),  # before Compare is visited, which asks it for a second checkpoint
    "overview": (PLOT, ""),
    "sharing": (PLOT, ""),
    "embeddings": (MAP, ""),
    "padding": (PLOT, ""),
    "lens": (PLOT, ""),
    "masked_lm": (PLOT, ""),
    "similarity": (PLOT, "&pooling=mean"),
    "heads": (PLOT, ""),
    "training": (PLOT, ""),
    "compare": (PLOT, "&other={checkpoint}"),
    "snapshots": (PLOT, ""),
    "checks": (PLACE, ""),
    "classes": (PLOT, ""),
    "server": (PLACE, ""),
    "tour": (CARDS, ""),
}
# Pages that say something of a checkpoint without a head; of padding, whose gradient takes one, in words.
ENCODERS = ("overview", "sharing", "embeddings", "lens", "training", "compare", "checks", "classes")
# page -> inputs with which it has all its charts
CHARTS = {
    "overview": "",
    "sharing": "",
    "classes": "",
    "padding": "",
    "lens": "",
    "masked_lm": "",
    "similarity": "&pooling=mean",
    "embeddings": "&tab=Norms",
    "snapshots": "&run=demo-run",
}
MEASURE = """picture => {
  const main = document.querySelector("[data-testid=stMain]");
  const heading = document.querySelector(".st-key-heading").getBoundingClientRect();
  const seen = picture.getBoundingClientRect();
  const inside = Math.min(seen.bottom, innerHeight) - Math.max(seen.top, 0);
  return [heading.bottom, main.scrollHeight, seen.height, inside / seen.height, seen.bottom];
}"""
# A box is as high as its font, not as its letters: lines may share a little of it. Boxes of slanted texts are slanted.
CLASHES = """() => [...document.querySelectorAll(".js-plotly-plot")].flatMap(chart => {
  const frame = chart.getBoundingClientRect();
  const shown = (text) => text.textContent.trim() && !text.closest(".hoverlayer") && text.checkVisibility();
  const corners = (text) => {
    const { x, y, width, height } = text.getBBox(), place = text.getScreenCTM();
    const [left, right, top, bottom] = [x + 0.5, x + width - 0.5, y + 1.5, y + height - 1.5];
    return [[left, top], [right, top], [right, bottom], [left, bottom]]
      .map(([x, y]) => new DOMPoint(x, y).matrixTransform(place));
  };
  const texts = [...chart.querySelectorAll("svg text")].filter(shown)
    .map(text => ({ text: text.textContent, box: text.getBoundingClientRect(), corners: corners(text) }))
    .filter(({ box }) => box.width);
  const outside = texts.filter(({ box }) => box.left < frame.left - 2 || box.right > frame.right + 2);
  const apart = (a, b) => [0, 1].some(side => {
    const [from, to] = [a[side], a[side + 1]];
    const along = ({ x, y }) => x * (to.x - from.x) + y * (to.y - from.y);
    const [one, other] = [a.map(along), b.map(along)];
    return Math.max(...one) <= Math.min(...other) || Math.max(...other) <= Math.min(...one);
  });
  const clash = (a, b) => !apart(a, b) && !apart(b, a);
  return [
    ...outside.map(({ text }) => `“${text}” is cut`),
    ...texts.flatMap((one, at) => texts.slice(at + 1).filter(other => clash(one.corners, other.corners))
      .map(other => `“${one.text}” and “${other.text}” overlap`)),
  ];
})"""
# Pixels of letters on the screen, however far what they are in is zoomed out.
SMALL = """smallest => [...document.querySelectorAll(".js-plotly-plot svg text")]
  .filter(text => text.textContent.trim() && text.checkVisibility() && !text.closest(".hoverlayer"))
  .flatMap(text => {
    const { a, b } = text.getScreenCTM();
    const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
    return size < smallest ? [`“${text.textContent}” is ${size.toFixed(1)} px high`] : [];
  })"""
# Charts that scroll sideways, but for maps of tokens.
SCROLLERS = """() => [...document.querySelectorAll(".js-plotly-plot")]
  .filter(chart => !chart.closest("[class*=heatmap_frame]") && chart.getBoundingClientRect().right > innerWidth)
  .map(chart => `${chart.querySelector(".gtitle").textContent} is ${chart.clientWidth} px wide`)"""
# On a wide screen what belongs to a picture is beside it, and no button of Plotly's own saves it in another size.
APART = """wide => [
  ...[...document.querySelectorAll(".st-key-beside")]
    .filter(place => wide && place.getBoundingClientRect().left
      < document.querySelector(".st-key-picture").getBoundingClientRect().right)
    .map(() => "what belongs to the picture is below it"),
  ...[...document.querySelectorAll(".modebar-btn[data-title^=Download]")]
    .filter(button => button.checkVisibility()).map(() => "a chart has a second way to save it"),
]"""
# What scrolls beside a picture is made a stop of the Tab key a moment after it grew.
STOPS = """() => [...document.querySelectorAll(".st-key-beside")]
  .every(place => place.scrollHeight <= place.clientHeight + 1 || place.tabIndex === 0)"""
AXE = {"resultTypes": ["violations"]}
# Each width and each theme with each checkpoint: places do not depend on the theme, nor colors on the width.
LOOKS = [
    (1280, "light", "demo-bert"),
    (1000, "dark", "demo-bert"),
    (1280, "dark", "demo-gpt2"),
    (1000, "light", "demo-gpt2"),
]


def places(page: Page, picture: str) -> Iterator[str]:
    """What is wrong with where the picture lies."""
    expect(page.locator(picture).first).to_be_visible()
    heading, length, height, share, bottom = page.locator(picture).first.evaluate(MEASURE)
    assert height > 100
    low = picture != PLACE and page.evaluate("innerWidth") >= WIDE and bottom > FOLD
    if heading > HEADING or length > LONGEST or share < WHOLE or low:
        seen = f"{100 * share:.0f} % of {height:.0f} px are seen, which end at {bottom:.0f}"
        yield f"heading to {heading:.0f}, page of {length:.0f}, {seen}"


def barriers(page: Page) -> Iterator[str]:
    """What axe finds that keeps somebody out, and headings that skip a level."""
    for finding in Axe().run(page, options=AXE).response["violations"]:
        if finding["impact"] in {"serious", "critical"} or finding["id"] == "heading-order":
            yield from (f"{finding['id']}: {node['html'][:200]} {node['failureSummary']}" for node in finding["nodes"])


def first_screens(page: Page, pictures: dict[str, tuple[str, str]], checkpoint: str, *, name: str) -> list[str]:
    """What is wrong with the first screen of pages.

    Args:
        page: One is open, with the checkpoint.
        pictures: Rows of PICTURES.
        checkpoint: As links name it.
        name: As pages name it.
    """
    wrong: list[str] = []
    for slug, (picture, inputs) in pictures.items():
        follow(page, f"/{slug}?checkpoint={checkpoint}{inputs.format(checkpoint=checkpoint)}")
        if slug in PAGES:
            expect_page(page, slug, name)
        else:
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            page.wait_for_function("slug => location.pathname === '/' + slug", arg=slug)
        expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
        expect_calm(page)
        page.wait_for_timeout(500)  # heights follow what is in them
        page.wait_for_function(STOPS)
        found = [
            *places(page, picture),
            *page.evaluate(CLASHES),
            *page.evaluate(APART, page.evaluate("innerWidth") >= WIDE),
        ]
        found += barriers(page)
        wrong += [f"{slug}: {what}" for what in found]
    return wrong


@pytest.mark.parametrize(("width", "scheme", "checkpoint"), LOOKS)
def test_the_first_screen(
    width: int, scheme: str, checkpoint: str, server: Server, open_browser: Callable[..., Page]
) -> None:
    page = open_browser(width=width, height=HEIGHT, color_scheme=scheme)
    page.goto(f"{server.url}/training?checkpoint={checkpoint}")
    expect_page(page, "training", checkpoint)
    wrong = first_screens(page, PICTURES, checkpoint, name=checkpoint)
    assert not wrong, "\n".join(wrong)


def test_the_first_screen_of_a_published_encoder(
    start_server: Callable[..., Server], minilm_folder: Path, open_browser: Callable[..., Page]
) -> None:
    """A real vocabulary, a long name, no head: pages that show something of it, once."""
    link, name = f"path:{minilm_folder}", f"{minilm_folder.parent.name}/{minilm_folder.name}"
    server = start_server(INSPECTOR_OPEN=link, INSPECTOR_ROOTS=str(minilm_folder.parent))
    page = open_browser(width=1000, height=HEIGHT, color_scheme="dark")
    page.goto(f"{server.url}/training?checkpoint={link}")
    expect_page(page, "training", name)
    pictures = {slug: PICTURES[slug] for slug in ENCODERS} | {"padding": (PLACE, ""), "similarity": (PLOT, "")}
    wrong = first_screens(page, pictures, link, name=name)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("width", [PHONE, ZOOMED])
def test_charts_on_a_small_screen(width: int, server: Server, open_browser: Callable[..., Page]) -> None:
    """No text of a chart is cut or lies over another one, and only what must not be smaller scrolls sideways.

    On a phone nothing does but maps of tokens, and all letters can be read.
    """
    page = open_browser(width=width, height=HEIGHT, **({"user_agent": AGENT} if width == PHONE else {}))
    page.goto(f"{server.url}/training?checkpoint=demo-bert")
    expect_page(page, "training", "demo-bert")
    wrong: list[str] = []
    for slug, inputs in CHARTS.items():
        follow(page, f"/{slug}?checkpoint=demo-bert{inputs}")
        expect_page(page, slug, "demo-bert")
        expect(page.locator(PLOT).first).to_be_visible()
        expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
        page.wait_for_timeout(500)  # heights follow what is in them
        wide = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        wrong += [f"{slug}: {what}" for what in page.evaluate(CLASHES)]
        wrong += [f"{slug}: {wide} pixels wide"] if wide > width else []
        if width == PHONE:
            found = [*page.evaluate(SMALL, 9), *page.evaluate(SCROLLERS)]
            wrong += [f"{slug}: {what}" for what in found]
    assert not wrong, "\n".join(wrong)


def test_what_the_measurements_find(page: Page) -> None:
    """Texts of a chart that overlap or are cut, and gray on gray."""
    page.set_content(
        "<html lang=en><title>x</title><main><h1>x</h1><p style='color:#aaa;background:#fff'>pale</p>"
        "<div class=js-plotly-plot style='width:100px;overflow:hidden'><svg width=100 height=50>"
        "<text x=5 y=20>one</text><text x=10 y=22>two</text><text x=80 y=45>three</text>"
        "</svg></div><div class=js-plotly-plot style='width:300px'><svg width=300 height=90>"
        "<text transform='translate(40 9) rotate(45)'>up and</text>"
        "<text transform='translate(70 9) rotate(45)'>up and</text>"
        "</svg></div><div class=js-plotly-plot style='width:300px;zoom:0.5'><svg width=300 height=90>"
        "<text x=5 y=20 font-size=16>tiny</text><text x=5 y=60 font-size=20>large</text>"
        "</svg></div></main>"
    )
    assert page.evaluate(CLASHES) == ["“three” is cut", "“one” and “two” overlap"]
    assert page.evaluate(SMALL, 9) == ["“tiny” is 8.0 px high"]
    assert [found.partition(":")[0] for found in barriers(page)] == ["color-contrast"]
