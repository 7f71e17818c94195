"""Write a view as a piece of HTML for a notebook."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

import pandas as pd
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from inspector.plotting.theme import LIGHT
from inspector.report.page import ASSETS, in_script, write_elements
from inspector.view.blocks import Figure, Table
from inspector.view.view import Element, View

if TYPE_CHECKING:
    import plotly.graph_objects as go


def write_fragment(title: str, view: View | None, frame: pd.DataFrame | None) -> str:
    """Write a view, or a table where there is none.

    A fragment with figures brings plotly.js along, compressed: its cell may be run again, moved or exported alone.

    Args:
        title: Heading of the piece.
        view: Of an answer.
        frame: Instead of it.
    """
    script = f"plotly-{uuid4()}"
    elements = view.elements() if view else ()
    parts: list[Element | Markup] = [
        _figure(each.draw(LIGHT), script) if isinstance(each, Figure) else each for each in elements
    ]
    if any(isinstance(part, Markup) for part in parts):
        parts.insert(0, _library(script))
    if frame is not None:
        parts.append(Table("rows", "", frame))
    return write_elements(title, parts)


def _library(script: str) -> Markup:
    """plotly.js for the figures of a fragment, and what unpacks it where the page has none."""
    code = (ASSETS / "fragment.js").read_text("utf-8")
    return Markup(f'<script type="text/plain" id="{script}">{_packed()}</script><script>{code}</script>')


@cache
def _packed() -> str:
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def _figure(figure: go.Figure, script: str) -> Markup:
    place, drawn = f"figure-{uuid4()}", in_script(figure.to_json(engine="json") or "{}")
    return Markup(
        f'<div id="{place}" class="plotly-graph-div"></div>'
        f'<script>window.inspectorPlotly(document.getElementById("{script}").textContent).then((plotly) => '
        f'plotly.newPlot("{place}", {{...{drawn}, config: {{responsive: true}}}}));</script>'
    )
