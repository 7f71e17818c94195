"""How the numbers of a tensor are distributed."""

from __future__ import annotations

from inspector.analyses.histogram import words
from inspector.analyses.histogram.figures import histogram_figure
from inspector.analyses.histogram.request import HistogramRequest
from inspector.analyses.histogram.result import Histogram
from inspector.view.blocks import Bars, Facts, Figure
from inspector.view.view import Headline, Picture, Verdict, View

TOGETHER = 5  # bins of the figure in a bar of text


def view(found: Histogram, request: HistogramRequest, *, name: str) -> View:
    """The histogram and what the numbers are."""
    return View(
        Headline(words.headline(found), _verdict(found)),
        picture=_picture(found, name) if found.counts else None,
        beside=(Facts(words.facts(found)),),
        more="--json prints the edges and the count of every bin.",
    )


def _verdict(found: Histogram) -> Verdict | None:
    if found.nan or found.infinite:
        return "problem"
    return "warning" if found.least == found.most == 0 else None


def _picture(found: Histogram, name: str) -> Picture:
    alt = "How many numbers have which value, as bars"
    starts = range(0, len(found.counts), TOGETHER)
    counts = [sum(found.counts[start : start + TOGETHER]) for start in starts]
    text = Bars(
        tuple(f"{found.edges[start]:.3g} to {found.edges[start + TOGETHER]:.3g}" for start in starts),
        tuple(map(float, counts)),
        tuple(f"{count:,}" for count in counts),
    )
    return Picture(Figure("values", lambda theme: histogram_figure(found, name=name, theme=theme), alt), text)
