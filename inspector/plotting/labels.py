"""Write what marks are, where the text touches no other text and no mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from inspector.plotting import theme as look
from inspector.plotting.lettering import Rectangle, place_labels, text_width
from inspector.plotting.theme import Theme
from inspector.text import plain, shorten

NARROWEST = 560  # pixels of a plot: labels keep apart there, and on wider pages
LETTERS, SIZE = 16, 13


@dataclass(frozen=True, slots=True)
class NamedMark:
    """A mark with a name."""

    text: str
    x: float
    y: float
    color: str  # of the text


def write_labels(
    figure: go.Figure,
    named: Sequence[NamedMark],
    others: Sequence[tuple[float, float]] = (),
    *,
    across: tuple[float, float],
    up: tuple[float, float],
    height: float,
    radius: float,
    theme: Theme,
) -> None:
    """Add a label beside each mark, as annotations; those that find no room are left out.

    Args:
        named: The most important first.
        others: x and y of marks without a label.
        across: The range of the x axis.
        up: The range of the y axis.
        height: Pixels of the plot.
        radius: Pixels of a mark.
        theme: Colors.
    """

    def spot(x: float, y: float) -> tuple[float, float]:
        return NARROWEST * (x - across[0]) / (across[1] - across[0]), height * (up[1] - y) / (up[1] - up[0])

    texts = [shorten(each.text, LETTERS) for each in named]
    placed = place_labels(
        [spot(each.x, each.y) for each in named],
        [(text_width(text, SIZE) + 4, SIZE + 5.0) for text in texts],
        within=Rectangle(0, 0, NARROWEST, height),
        radius=radius,
        others=[spot(x, y) for x, y in others],
    )
    for label in placed:
        mark = named[label.mark]
        figure.add_annotation(
            x=mark.x,
            y=mark.y,
            text=plain(texts[label.mark]),
            showarrow=False,
            borderpad=1,
            font={"size": SIZE, "color": mark.color},
            bgcolor=look.alpha(theme.page, 0.72),
            xanchor={1: "left", 0: "center", -1: "right"}[label.across],
            yanchor={1: "bottom", 0: "middle", -1: "top"}[label.up],
            xshift=label.across * radius,
            yshift=label.up * radius,
        )
