"""What a browser is sent for the first picture of each page, of checkpoints with very many names.

Sparse checkpoints with real headers; a fresh Chromium page each, after the checkpoint was opened once.
Counted are the bytes of the WebSocket and of media files until the script has ended. Progress of long
work counts as well: on a busy machine figures are larger.

And seconds from the click that opens a checkpoint for the first time to the end of its Overview: a server that has
just started each time, so nothing about the checkpoint is known yet.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, Response, sync_playwright

from inspector.serving.trial import Server, start_app, wait_until_up
from tools.bench._sparse import SHAPES, write
from tools.chromium import FLAGS, find_chromium

PAGES = {  # slug, and inputs with which it needs no numbers
    **dict.fromkeys(("overview", "sharing", "classes", "training", "tour", "report", "server"), ""),
    "checks": "&values=none",
}
NAMES = ("405B", "V3")
OPENED = ("1.2B", "8B", "405B", "V3")
ROUNDS = 3
WAIT_MILLISECONDS = 300_000
SPARE_MILLISECONDS = 5_000  # a server that was started long ago has its spare worker
ENDED = "[data-testid=stApp][data-test-script-state=notRunning]"


@contextmanager
def serving(shape: str) -> Iterator[tuple[Server, BrowserContext]]:
    """A server that may open one sparse checkpoint, and a browser."""
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        home = Path(place)
        write(home / "roots" / shape, SHAPES[shape])
        server = start_app(home, INSPECTOR_ROOTS=str(home / "roots"))
        try:
            wait_until_up(server)
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
            yield server, browser.new_context(viewport={"width": 1400, "height": 1000})
            browser.close()
        finally:
            server.stop()


def wait(page: Page) -> None:
    page.get_by_test_id("stMain").get_by_role("heading", level=1).first.wait_for()
    page.locator(ENDED).wait_for()


def first_picture(context: BrowserContext, server: Server, link: str) -> tuple[int, float]:
    """Bytes and seconds until a page is there."""
    page = context.new_page()
    page.set_default_timeout(WAIT_MILLISECONDS)
    sizes: list[int] = []

    def count(response: Response) -> None:
        if response.url.startswith(f"{server.url}/media/"):
            sizes.append(len(response.body()))

    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))))
    page.on("response", count)
    started = time.monotonic()
    page.goto(f"{server.url}/{link}")
    wait(page)
    seconds = time.monotonic() - started
    page.wait_for_timeout(1_000)
    page.close()
    return sum(sizes), seconds


def open_first(page: Page, server: Server, shape: str) -> float:
    """Seconds from the click to the Overview of a checkpoint that was never opened."""
    page.set_default_timeout(WAIT_MILLISECONDS)
    page.goto(f"{server.url}/?checkpoint=path:{shape}")
    button = page.get_by_role("button", name="Open these files")
    button.wait_for()
    page.wait_for_timeout(SPARE_MILLISECONDS)
    started = time.monotonic()
    button.click()
    page.get_by_test_id("stMetric").first.wait_for()
    wait(page)
    return time.monotonic() - started


def main() -> None:
    """Print both tables."""
    print("| checkpoint | click to Overview, seconds |")
    print("|---|---|")
    for shape in OPENED:
        seconds = []
        for _ in range(ROUNDS):
            with serving(shape) as (server, context):
                seconds.append(open_first(context.new_page(), server, shape))
        print(f"| {shape} | {statistics.median(seconds):.1f} ({min(seconds):.1f}–{max(seconds):.1f}) |", flush=True)
    print("\n| checkpoint | page | KB | seconds |")
    print("|---|---|---|---|")
    for shape in NAMES:
        with serving(shape) as (server, context):
            page = context.new_page()
            open_first(page, server, shape)
            page.close()
            for slug, inputs in PAGES.items():
                nbytes, seconds = first_picture(context, server, f"{slug}?checkpoint=path:{shape}{inputs}")
                print(f"| {shape} | {slug} | {nbytes / 1000:.0f} | {seconds:.1f} |", flush=True)
