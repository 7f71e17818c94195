"""Write a section as a piece of HTML for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
from markupsafe import Markup

from inspector.plotting.theme import LIGHT
from inspector.report.content import Block, Drawn, Tabled
from inspector.report.page import write_blocks

if TYPE_CHECKING:
    import plotly.graph_objects as go

PLOTLY = "plotly.js"
_written: set[str] = set()  # scripts that this process has put into a notebook


def write_fragment(title: str, blocks: Sequence[Block], figure: go.Figure | None, frame: pd.DataFrame | None) -> str:
    """Write blocks, or a figure or table where there are none.

    plotly.js is in the first fragment with a figure that a process writes, and serves the others.

    Args:
        frame: Instead of blocks and figure.
    """
    parts: list[Block | Markup] = [
        _figure(block.draw(LIGHT)) if isinstance(block, Drawn) else block for block in blocks
    ]
    if figure is not None:
        parts.append(_figure(figure))
    if frame is not None:
        parts.append(Tabled("rows", "", frame))
    return write_blocks(title, parts)


def _figure(figure: go.Figure) -> Markup:
    first = PLOTLY not in _written
    _written.add(PLOTLY)
    return Markup(figure.to_html(full_html=False, include_plotlyjs=first))
