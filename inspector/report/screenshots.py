"""Pictures of the app's pages: start it on this machine alone, visit every page, end it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe
from typing import Literal
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from inspector.browser import NO_CHROMIUM, BrowserTab, Chromium, find_chromium, run
from inspector.catalog import PAGES
from inspector.errors import InspectorError, RequestError
from inspector.program import app_script
from inspector.store.reference import CheckpointRef

APP = app_script()
START_SECONDS = 120.0
STOP_SECONDS = 30.0
FIRST_HEIGHT, MOST_HEIGHT = 1000, 16_000  # pixels; Chromium's pictures end at 16,384
POLL_SECONDS = 0.1
CALM_LOOKS = 5  # that must find the same
CALM_SECONDS = 0.25  # between two of them
# The page asks before a link opens a path or a hub model: whoever asked for pictures has named it.
# The script has ended, nothing is awaited, and every chart is drawn; then the height.
STATE = """(() => {
  document.querySelector("[class*=st-key-agreed] button")?.click();
  const main = document.querySelector("[data-testid=stMain]");
  const calm = document.querySelector("[data-testid=stApp][data-test-script-state=notRunning]")
    && document.querySelector("h1") && !document.querySelector("[role=progressbar]")
    && !document.querySelector("[data-testid=stSkeleton], [data-testid=stSpinner]")
    && [...document.querySelectorAll("[data-testid=stPlotlyChart]")].every(
      (chart) => chart.querySelector(".main-svg"));
  return main && calm ? main.scrollHeight : 0;
})()"""
WITHOUT_LINK = "document.querySelector('.st-key-leave_screenshot')?.remove()"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PageScreenshot:
    """One page's picture."""

    page: str  # slug
    file: str
    nbytes: int
    width: int  # pixels
    height: int
    cut: bool  # the page is longer than a picture can be


def check_pages(slugs: Sequence[str]) -> tuple[str, ...]:
    """Pages in the navigation's order, each once; none named: all.

    Raises:
        RequestError: If there is no such page.
    """
    asked = [slug.strip() for slug in slugs if slug.strip()]
    unknown = [slug for slug in asked if slug not in PAGES]
    if unknown:
        known = ", ".join(reversed(PAGES))
        raise RequestError(f"There is no page {unknown[0][:40]!r}: choose from {known}.")
    return tuple(slug for slug in reversed(PAGES) if not asked or slug in asked)


def take_pictures(
    reference: CheckpointRef,
    folder: Path,
    *,
    pages: Sequence[str],
    theme: Literal["light", "dark"],
    width: int,
    tell: Tell = lambda text: None,
) -> list[PageScreenshot]:
    """Take a picture of each page of a checkpoint.

    Args:
        folder: Where <page>.png go; made where it is not there.
        width: Of the window, pixels.
        tell: Called with what is being done.

    Raises:
        RequestError: If there is no browser, or the folder cannot be written.
        InspectorError: If a page shows no result in time.
    """
    if find_chromium() is None:
        raise RequestError(NO_CHROMIUM)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(
            f"{folder.name} cannot be created ({error.strerror or 'no access'}): choose a folder that you can write to."
        ) from error
    tell("Starting the app")
    token = token_urlsafe()
    with _served(reference, token) as url:
        visit = _visit(url, token, reference, folder, pages=pages, theme=theme, width=width, tell=tell)
        return run(visit)


async def _visit(
    url: str,
    token: str,
    reference: CheckpointRef,
    folder: Path,
    *,
    pages: Sequence[str],
    theme: Literal["light", "dark"],
    width: int,
    tell: Tell,
) -> list[PageScreenshot]:
    taken = []
    async with Chromium() as chromium:
        tab = await chromium.tab()
        await tab.prefer(theme)
        for page in pages:
            tell(PAGES[page].title)
            query = urlencode({"checkpoint": str(reference), "screenshot": "1", "token": token})
            await tab.resize(width, FIRST_HEIGHT)
            await tab.go(f"{url}/{page}?{query}")
            taken.append(await _take(tab, page, folder / f"{page}.png", width=width))
    return taken


async def _take(tab: BrowserTab, page: str, file: Path, *, width: int) -> PageScreenshot:
    height = await _calm_height(tab, page)
    shown = min(height, MOST_HEIGHT)
    await tab.value(WITHOUT_LINK)
    await tab.resize(width, shown)
    height = await _calm_height(tab, page)  # a taller window lays out some pages anew
    shown = min(height, MOST_HEIGHT)
    await tab.resize(width, shown)
    await _calm_height(tab, page)
    data = await tab.picture()
    file.write_bytes(data)
    return PageScreenshot(page, str(file), len(data), width, shown, height > shown)


async def _calm_height(tab: BrowserTab, page: str) -> int:
    """The page's height, once several looks in a row have found the same."""
    looks: list[int] = []
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        looks = [*looks[1 - CALM_LOOKS :], int(await tab.value(STATE) or 0)]
        if len(looks) == CALM_LOOKS and len(set(looks)) == 1 and looks[0]:
            return looks[0]
        await asyncio.sleep(CALM_SECONDS)
    raise InspectorError(
        f"The page {page} did not finish loading within {START_SECONDS:.0f} seconds: try again on a less loaded "
        "machine."
    )


@contextmanager
def _served(reference: CheckpointRef, token: str) -> Iterator[str]:
    """The app on a free port of this machine, for nobody else; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = reference.origin.path
    roots = {"INSPECTOR_ROOTS": str(path.parent)} if path else {}
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "streamlit",
            "run",
            str(APP),
            f"--server.port={port}",
            "--server.headless=true",
            "--server.address=localhost",
        ],
        cwd=APP.parent,
        env={**os.environ, "INSPECTOR_SIGN_IN": "none", "INSPECTOR_TOKEN": token, **roots},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://localhost:{port}"
    try:
        _wait_until_up(url, process)
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urlopen(f"{url}/_stcore/health", timeout=5).close()
        except (URLError, TimeoutError, ConnectionError):
            time.sleep(POLL_SECONDS)
        else:
            return
    raise InspectorError("The app did not start: start it with `make run` to see why.")
