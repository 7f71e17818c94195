"""Find a Chromium on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

VARIABLE = "INSPECTOR_CHROMIUM"  # names one that is not on the path
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NO_CHROMIUM = (
    "No Chromium was found on this machine: for pictures and PDFs, install the package chromium or Google Chrome, or "
    "set INSPECTOR_CHROMIUM to a browser."
)


def find_chromium() -> str | None:
    """The Chromium that the environment names, else the first on the path; None: there is none."""
    if named := os.environ.get(VARIABLE):
        return named if Path(named).is_file() else None
    for name in NAMES:
        found = shutil.which(name)
        # Ubuntu's chromium package is a stub that asks for a snap.
        if found and not _is_stub(Path(found)):
            return found
    return None


def _is_stub(path: Path) -> bool:
    start = path.resolve().read_bytes()[:4000]
    return start.startswith(b"#!") and b"snap" in start
