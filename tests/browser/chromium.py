"""Find the Chromium that the browser tests drive."""

from __future__ import annotations

import shutil
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
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
    for name in NAMES:
        found = shutil.which(name)
        # Ubuntu's chromium package is a stub that asks for a snap.
        if found and not _is_stub(Path(found)):
            return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
    return str(own) if own.exists() else None


def _is_stub(path: Path) -> bool:
    start = path.resolve().read_bytes()[:4000]
    return start.startswith(b"#!") and b"snap" in start
