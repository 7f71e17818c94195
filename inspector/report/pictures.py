"""Pictures of a report's figures and its PDF, drawn by a Chromium where there is one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from urllib.parse import unquote
from zlib import crc32

from inspector.browser import Chromium, run
from inspector.report.labeling import Facts, label_pdf, label_png, label_svg

WIDTH, HEIGHT = 1100, 900  # of the window
PAPER = 680  # pixels between the margins of A4 (`report.css`)
PRINTED, SCALE = 900, 3  # pixels of a picture, and of a PNG for each of them: sharp on paper
DRAWN = "document.documentElement?.dataset.drawn"
# Both pictures of a figure. Plotly names the parts of a drawing by Math.random: it begins with the figure's name, so
# that the same figure gives the same bytes, and two drawings in one page have no name in common.
IMAGES = """(async () => {{
  let state = {seed};
  Math.random = () => (state = state * 48271 % 2147483647) / 2147483647;
  const place = document.getElementById("plot-" + {name});
  const width = Math.max(place.layout.width || 0, {wide}), height = place._fullLayout.height;
  const drawn = await Plotly.toImage(place, {{format: "svg", width, height}});
  const picture = new Image();
  picture.src = drawn;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width * {scale}, height * {scale}];
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return {{svg: drawn, png: canvas.toDataURL("image/png")}};
}})()"""

Tell = Callable[[float, str], None]


def draw_pictures(page: str, figures: Mapping[str, Facts], *, made: str, tell: Tell) -> dict[str, bytes]:
    """Draw every figure of a report, and print it.

    Args:
        figures: Their names, "section-figure", with what the files say of themselves.
        made: When the report was made.
        tell: Called with the share done and what is being done; may raise to stop.

    Returns:
        Name of a file -> its bytes: figures/<name>.png and .svg, and report.pdf.

    Raises:
        InspectorError: If there is no browser, or it fails.
    """
    return run(_draw(page, figures, made, tell))


async def _draw(page: str, figures: Mapping[str, Facts], made: str, tell: Tell) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    async with Chromium() as chromium:
        tab = await chromium.tab()
        await tab.resize(WIDTH, HEIGHT)
        await tab.prefer("light")
        await tab.offline()
        await tab.show(page)
        await tab.until(DRAWN)
        for place, (name, facts) in enumerate(figures.items()):
            tell(place / (len(figures) + 1), f"Drawing {name}")
            drawn = await tab.value(IMAGES.format(name=json.dumps(name), seed=_seed(name), wide=PRINTED, scale=SCALE))
            files[f"figures/{name}.png"] = label_png(_decoded(drawn["png"]), facts)
            files[f"figures/{name}.svg"] = label_svg(_decoded(drawn["svg"]), facts)
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
    head, _, data = url.partition(",")
    return base64.b64decode(data) if head.endswith(";base64") else unquote(data).encode()
