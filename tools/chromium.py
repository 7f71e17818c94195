"""Find the Chromium that the browser tests drive."""

from __future__ import annotations

from pathlib import Path

from inspector import browser

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    """The first Chromium on the path, else Playwright's own, else None."""
    if found := browser.find_chromium():
        return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
    return str(own) if own.exists() else None
