"""Pictures of a report's figures and its PDF, drawn by a Chromium where there is one."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable
from urllib.parse import unquote

from inspector.browser import Chromium, Tab, run

WIDTH, HEIGHT = 1100, 900  # of the window
PRINTED, SCALE = 900, 3  # pixels of a picture, and of a PNG for each of them: sharp on paper
DRAWN = "document.documentElement?.dataset.drawn"
IMAGE = """(() => {{
  const place = document.getElementById("plot-" + {name});
  return Plotly.toImage(place, {{format: "{kind}", width: Math.max(place.layout.width || 0, {wide}),
    height: place._fullLayout.height, scale: {scale}}});
}})()"""

Tell = Callable[[float, str], None]


def draw_pictures(page: str, names: list[str], *, tell: Tell) -> dict[str, bytes]:
    """Draw every figure of a report, and print it.

    Args:
        names: Of its figures, "section-figure".
        tell: Called with the share done and what is being done; may raise to stop.

    Returns:
        Name of a file -> its bytes: figures/<name>.png and .svg, and report.pdf.

    Raises:
        InspectorError: If there is no browser, or it fails.
    """
    return run(_draw(page, names, tell))


async def _draw(page: str, names: list[str], tell: Tell) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    async with Chromium() as chromium:
        tab = await chromium.tab()
        await tab.resize(WIDTH, HEIGHT)
        await tab.prefer("light")
        await tab.offline()
        await tab.show(page)
        await tab.until(DRAWN)
        for place, name in enumerate(names):
            tell(place / (len(names) + 1), f"Drawing {name}")
            files |= {f"figures/{name}.{kind}": data async for kind, data in _both(tab, name)}
        tell(len(names) / (len(names) + 1), "Printing")
        files["report.pdf"] = await tab.printed()
    return files


async def _both(tab: Tab, name: str) -> AsyncIterator[tuple[str, bytes]]:
    for kind, scale in (("png", SCALE), ("svg", 1)):
        script = IMAGE.format(name=json.dumps(name), kind=kind, wide=PRINTED, scale=scale)
        yield kind, _decoded(await tab.value(script))


def _decoded(url: str) -> bytes:
    """The bytes that a data: address holds."""
    head, _, data = url.partition(",")
    return base64.b64decode(data) if head.endswith(";base64") else unquote(data).encode()
