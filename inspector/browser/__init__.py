"""A Chromium that is there: found, and driven by its DevTools protocol."""

from inspector.browser.driving import BrowserTab, Chromium, run
from inspector.browser.finding import NO_CHROMIUM, find_chromium

__all__ = ["NO_CHROMIUM", "BrowserTab", "Chromium", "find_chromium", "run"]
