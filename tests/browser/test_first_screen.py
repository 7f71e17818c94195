"""The first screen of every page: a line of heading, the picture whole, and not much below."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, follow

HEIGHT = 800
HEADING, LONGEST = 64, 1_800  # pixels
WHOLE = 0.9  # of the picture
PLOT, PLACE, MAP = ".js-plotly-plot", ".st-key-picture", ".stage canvas"
# page -> its picture, and inputs without which it has none
PICTURES = {
    "overview": (PLOT, ""),
    "sharing": (PLOT, ""),
    "embeddings": (MAP, ""),
    "padding": (PLOT, ""),
    "lens": (PLOT, ""),
    "masked_lm": (PLOT, ""),
    "heads": (PLACE, ""),
    "training": (PLOT, ""),
    "compare": (PLOT, "&other={checkpoint}"),
    "snapshots": (PLOT, "&run=demo-run"),
    "checks": (PLACE, ""),
}
MEASURE = """picture => {
  const main = document.querySelector("[data-testid=stMain]");
  const heading = document.querySelector(".st-key-heading").getBoundingClientRect();
  const seen = picture.getBoundingClientRect();
  const inside = Math.min(seen.bottom, innerHeight) - Math.max(seen.top, 0);
  return [heading.bottom, main.scrollHeight, seen.height, inside / seen.height];
}"""


@pytest.mark.parametrize("checkpoint", ["demo-bert", "demo-gpt2"])
@pytest.mark.parametrize("width", [1280, 1000])
def test_the_picture_is_on_the_first_screen(
    width: int, checkpoint: str, server: Server, open_browser: Callable[..., Page]
) -> None:
    page = open_browser(width=width, height=HEIGHT)
    page.goto(f"{server.url}/training?checkpoint={checkpoint}")
    expect_page(page, "training", checkpoint)
    wrong: list[str] = []
    for slug, (picture, inputs) in PICTURES.items():
        follow(page, f"/{slug}?checkpoint={checkpoint}{inputs.format(checkpoint=checkpoint)}")
        expect_page(page, slug, checkpoint)
        expect(page.locator(picture).first).to_be_visible()
        expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
        expect_calm(page)
        page.wait_for_timeout(500)  # heights follow what is in them
        heading, length, height, share = page.locator(picture).first.evaluate(MEASURE)
        assert height > 100
        found = f"heading to {heading:.0f}, page of {length:.0f}, {100 * share:.0f} % of {height:.0f} px are seen"
        if heading > HEADING or length > LONGEST or share < WHOLE:
            wrong.append(f"{slug}: {found}")
    assert not wrong, "\n".join(wrong)
