"""Contact sheet of every page's first screen, light and dark: `make look`, to be looked at."""

from __future__ import annotations

import argparse
import html
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from inspector.catalog import CATALOG
from inspector.demo import SNAPSHOTS
from inspector.serving.trial import Server, start_app, wait_until_up
from tools.chromium import FLAGS, find_chromium

WIDTH, HEIGHT = 1280, 800
THUMB = 620  # pixels
INSTEAD = {"compare": next(iter(SNAPSHOTS))}  # page -> what it shows instead, as the page chooses the other end
SLUGS = (*dict.fromkeys(analysis.slug for analysis in CATALOG.values()), "report", "tour", "server")
CALM = "[data-testid=stApp][data-test-script-state=notRunning]"
PLOTS = "[data-testid=stPlotlyChart]"
DRAWN = "plots => [...document.querySelectorAll(plots)].every(plot => plot.querySelector('.main-svg'))"
MILLISECONDS = 120_000  # for a model that has to be loaded first
SETTLED = 800  # milliseconds in which charts are drawn


def main() -> None:
    """Write the sheet and the screens that it consists of."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("screenshots"), help="folder for the pictures")
    parser.add_argument("--checkpoints", nargs="+", default=["demo-bert", "demo-gpt2"])
    arguments = parser.parse_args()
    folder: Path = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=MILLISECONDS)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        server = start_app(Path(home))
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        try:
            wait_until_up(server)
            for checkpoint in arguments.checkpoints:
                looks = [list(shoot(browser, server, checkpoint, look, folder)) for look in ("light", "dark")]
                pairs = list(zip(*looks, strict=True))
                write_sheet(browser, pairs, folder / f"{checkpoint}.png")
                print(folder / f"{checkpoint}.png")
        finally:
            browser.close()
            server.stop()


def shoot(browser: Browser, server: Server, checkpoint: str, look: str, folder: Path) -> Iterator[Path]:
    """Take each page's first screen, in the order of the pages."""
    scheme = "dark" if look == "dark" else "light"
    page = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme, reduced_motion="reduce"
    ).new_page()
    for slug in SLUGS:
        page.goto(f"{server.url}/{slug}?checkpoint={INSTEAD.get(slug, checkpoint)}", timeout=MILLISECONDS)
        wait(page)
        path = folder / f"{slug}-{checkpoint}-{look}.png"
        page.screenshot(path=path)
        yield path
    page.context.close()


def wait(page: Page) -> None:
    """Wait until a page has all that it shows."""
    expect(page.locator(".st-key-heading")).to_be_visible()
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    expect(page.locator(CALM)).to_be_visible()
    page.wait_for_function(DRAWN, arg=PLOTS)
    page.wait_for_timeout(SETTLED)


def write_sheet(browser: Browser, pairs: list[tuple[Path, Path]], output: Path) -> None:
    """Lay screens out in rows of two pages, each light and dark."""
    images = "".join(f'<img src="{html.escape(path.resolve().as_uri())}">' for pair in pairs for path in pair)
    style = f"body{{margin:8px;display:grid;grid-template-columns:repeat(4,{THUMB}px);gap:8px;background:#888}}"
    source = output.with_suffix(".html")
    source.write_text(f"<style>{style}img{{width:100%}}</style>{images}", encoding="utf-8")
    page = browser.new_page(viewport={"width": 4 * (THUMB + 8) + 8, "height": 800})
    page.goto(source.resolve().as_uri())
    page.screenshot(path=output, full_page=True)
    page.close()


if __name__ == "__main__":
    main()
