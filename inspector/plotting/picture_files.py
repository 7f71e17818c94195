"""Files of figures, made by the browser that draws them: the script, with the fonts of figures."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path

ASSETS = Path(__file__).parent / "assets"
# The first families of `theme.SANS` and `theme.MONO`, regular and bold: their Latin letters, as Fontsource publishes
# them.
FONTS = {"Source Sans": "source-sans-3-latin", "Source Code Pro": "source-code-pro-latin"}
WEIGHTS = ("400", "700")


@cache
def picture_script() -> str:
    """The script that gives a figure's file its letters, what it shows and where that comes from."""
    fonts = [
        (family, weight, base64.b64encode((ASSETS / f"{file}-{weight}.woff2").read_bytes()).decode())
        for family, file in FONTS.items()
        for weight in WEIGHTS
    ]
    return (ASSETS / "picture.js").read_text("utf-8").replace("FONTS = []", f"FONTS = {json.dumps(fonts)}")
