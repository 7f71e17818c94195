"""Write a section as a piece of HTML for a notebook."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

import pandas as pd
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from inspector.plotting.theme import LIGHT
from inspector.report.content import Block, Drawn, Tabled
from inspector.report.page import ASSETS, in_script, write_blocks

if TYPE_CHECKING:
    import plotly.graph_objects as go


def write_fragment(title: str, blocks: Sequence[Block], figure: go.Figure | None, frame: pd.DataFrame | None) -> str:
    """Write blocks, or a figure or table where there are none.

    A fragment with figures brings plotly.js along, compressed: its cell may be run again, moved or exported alone.

    Args:
        frame: Instead of blocks and figure.
    """
    script = f"plotly-{uuid4()}"
    parts: list[Block | Markup] = [
        _figure(block.draw(LIGHT), script) if isinstance(block, Drawn) else block for block in blocks
    ]
    if figure is not None:
        parts.append(_figure(figure, script))
    if any(isinstance(part, Markup) for part in parts):
        parts.insert(0, _library(script))
    if frame is not None:
        parts.append(Tabled("rows", "", frame))
    return write_blocks(title, parts)


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
