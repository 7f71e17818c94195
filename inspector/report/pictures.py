"""Pictures of a report's figures and its PDF, drawn by a Chromium where there is one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from zlib import crc32

from inspector.browser import Chromium, run
from inspector.report.labeling import label_pdf

WIDTH, HEIGHT = 1100, 900  # of the window
PAPER = 680  # pixels between the margins of A4 (`report.css`)
DRAWN = "document.documentElement?.dataset.drawn"
# Both pictures of a figure. Plotly names the parts of a drawing by Math.random: it begins with the figure's name, so
# that the same figure gives the same bytes, and two drawings in one page have no name in common.
IMAGES = """(() => {{
  let state = {seed};
  Math.random = () => (state = state * 48271 % 2147483647) / 2147483647;
  return inspectorPictures({name});
}})()"""

Tell = Callable[[float, str], None]


def draw_pictures(page: str, figures: Sequence[str], *, made: str, tell: Tell) -> dict[str, bytes]:
    """Draw every figure of a report, and print it.

    Args:
        figures: Their names, "section-figure".
        made: When the report was made.
        tell: Called with the share done and what is being done; may raise to stop.

    Returns:
        Name of a file -> its bytes: figures/<name>.png and .svg, and report.pdf.

    Raises:
        InspectorError: If there is no browser, or it fails.
    """
    return run(_draw(page, figures, made, tell))


async def _draw(page: str, figures: Sequence[str], made: str, tell: Tell) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    async with Chromium() as chromium:
        tab = await chromium.tab()
        await tab.resize(WIDTH, HEIGHT)
        await tab.prefer("light")
        await tab.offline()
        await tab.show(page)
        await tab.until(DRAWN)
        for place, name in enumerate(figures):
            tell(place / (len(figures) + 1), f"Drawing {name}")
            drawn = await tab.value(IMAGES.format(name=json.dumps(name), seed=_seed(name)))
            files[f"figures/{name}.png"] = _decoded(drawn["png"])
            files[f"figures/{name}.svg"] = _decoded(drawn["svg"])
        tell(len(figures) / (len(figures) + 1), "Printing")
        await tab.prefer("light", media="print")
        await tab.resize(PAPER, HEIGHT)
        await tab.value("inspectorPaper().then(() => null)")
        files["report.pdf"] = label_pdf(await tab.printed(), made=made)
    return files


def _seed(name: str) -> int:
    """Where the generator of Park and Miller begins: 1 to 2^31 - 2."""
    return crc32(name.encode()) % (2**31 - 2) + 1


def _decoded(url: str) -> bytes:
    """The bytes that a data: address holds."""
    return base64.b64decode(url.partition(",")[2])
