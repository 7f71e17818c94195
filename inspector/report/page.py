"""Write a report as one HTML file that asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from plotly.offline import get_plotlyjs

from inspector.plotting.theme import Theme
from inspector.report.content import Block, Report
from inspector.report.provenance import content_fingerprint
from inspector.report.recolor import both
from inspector.text import bytes_text, text_html

ASSETS = Path(__file__).parent / "assets"
IDS = ("id", "position", "layer", "update", "step", "start", "end")  # numbers that are names
LONGEST = 400  # characters of a cell; the CSV has all of them


def write_page(report: Report) -> str:
    """Write the report as HTML.

    All text is escaped, and the page's own policy forbids whatever is not in it: two scripts run,
    known by their hashes, and nothing is loaded.

    Returns:
        The same text for the same report, but for its date.
    """
    scripts = [get_plotlyjs(), (ASSETS / "report.js").read_text("utf-8")]
    return _TEMPLATES.get_template("report.html.j2").render(
        report=report,
        fingerprint=content_fingerprint(report.context.overview),
        scripts=map(Markup, scripts),
        hashes=[base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts],
        style=Markup((ASSETS / "report.css").read_text("utf-8")),
    )


def write_blocks(title: str, blocks: Sequence[Block | Markup]) -> str:
    """Write blocks below a heading, as a piece of a page.

    Args:
        blocks: Figures are HTML already.
    """
    return _TEMPLATES.get_template("fragment.html.j2").render(title=title, blocks_or_figures=blocks)


def _figure(draw: Callable[[Theme], go.Figure]) -> dict[str, Any]:
    """A figure's data, as JSON that cannot end the element it stands in, and its size."""
    figure = both(draw)
    layout = figure["light"]["layout"]
    size = f"height:{layout.get('height', 450)}px"
    if layout.get("width"):
        size += f";width:{layout['width']}px"
    text = json.dumps(figure, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return {"size": size, "json": Markup(in_script(text))}


def in_script(text: str) -> str:
    """JSON that cannot end the script that it is in."""
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _number_column(column: Any) -> bool:
    """Whether a column's values stand at the right."""
    return is_numeric_dtype(column) and not is_bool_dtype(column)


def _amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any, name: Any) -> str:
    if hasattr(value, "item"):
        value = value.item()
    if value is None or type(value).__name__ == "NAType":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _count(str(name), value)
    if isinstance(value, float):
        return f"{value:.5g}" if math.isfinite(value) else "–"
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    text = str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _count(name: str, value: int) -> str:
    if name.endswith("nbytes"):
        return bytes_text(value)
    return str(value) if name in IDS or name.endswith("_id") else f"{value:,}"


def _label(name: Any) -> str:
    known = {"nbytes": "size", "token_id": "id"}
    return known.get(str(name), str(name).removesuffix("_nbytes").replace("_", " "))


def _shown(value: Any) -> Any:
    """Escape a text, and show what is hidden in it; our own markup stays as it is."""
    return Markup(text_html(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


_TEMPLATES = Environment(
    loader=FileSystemLoader(ASSETS),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_shown,
    keep_trailing_newline=True,
)
_TEMPLATES.filters |= {"figure": _figure, "cell": _cell, "label": _label}
_TEMPLATES.tests |= {"number_column": _number_column, "amount": _amount}
