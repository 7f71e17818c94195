"""Write a report as one HTML file that asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from plotly.offline import get_plotlyjs

from inspector.plotting.picture_files import picture_script
from inspector.report.content import Report
from inspector.report.labeling import readable
from inspector.report.provenance import content_fingerprint, figures_of
from inspector.report.recolor import both
from inspector.text import text_html
from inspector.view.blocks import Figure
from inspector.view.cells import cell_text, column_label, is_amount
from inspector.view.view import Element

ASSETS = Path(__file__).parent / "assets"
BREAKS = re.compile(r"(?<=[^\d\W])[._/](?=\w)|(?<=[\d\]])[._/](?=[^\d\W])")  # where a name may go on in a new line


def write_page(report: Report) -> str:
    """Write the report as HTML.

    All text is escaped, and the page's own policy forbids whatever is not in it: three scripts run,
    known by their hashes, and nothing is loaded.

    Returns:
        The same text for the same report, but for its date.
    """
    scripts = [get_plotlyjs(), picture_script(), (ASSETS / "report.js").read_text("utf-8")]
    return _TEMPLATES.get_template("report.html.j2").render(
        report=report,
        fingerprint=content_fingerprint(report.context.overview),
        facts={name: readable(facts) for name, facts in figures_of(report).items()},
        scripts=map(Markup, scripts),
        hashes=[base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts],
        style=Markup((ASSETS / "report.css").read_text("utf-8")),
    )


def write_elements(title: str, elements: Sequence[Element | Markup]) -> str:
    """Write what views consist of below a heading, as a piece of a page.

    Args:
        elements: Figures are HTML already.
    """
    return _TEMPLATES.get_template("fragment.html.j2").render(title=title, elements=elements)


def _figure(figure: Figure, facts: Mapping[str, str]) -> dict[str, Any]:
    """A figure's data, as JSON that cannot end the element it stands in, and its size.

    Args:
        facts: What its files say of themselves.
    """
    drawn = {**both(figure.printed or figure.draw), "facts": facts}
    if figure.narrow:
        drawn["narrow"] = both(figure.narrow)
    layout = drawn["light"]["layout"]
    size = f"height:{layout.get('height', 450)}px"
    if layout.get("width"):
        size += f";width:{layout['width']}px"
    text = json.dumps(drawn, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return {"size": size, "json": Markup(in_script(text))}


def in_script(text: str) -> str:
    """JSON that cannot end the script that it is in."""
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _number_column(column: Any) -> bool:
    """Whether a column's values stand at the right."""
    return is_numeric_dtype(column) and not is_bool_dtype(column)


def _breakable(text: str) -> Markup:
    """A cell's text that may be broken between the parts of a name, and in no word or number."""
    return Markup(BREAKS.sub(r"\g<0><wbr>", text_html(text)))


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
_TEMPLATES.filters |= {"figure": _figure, "cell": cell_text, "label": column_label, "breakable": _breakable}
_TEMPLATES.tests |= {"number_column": _number_column, "amount": is_amount}
