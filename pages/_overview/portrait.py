"""The picture of a model's matrices, which can be clicked and colored."""

from __future__ import annotations

from functools import partial

from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks
from inspector.analyses.overview.figures import portrait_figure
from inspector.analyses.overview.figures_parts import portray
from inspector.analyses.overview.result import Overview
from inspector.analyses.overview.words import portrait_subtitle
from inspector.results.checkpoint import Opened
from inspector.view.blocks import Figure
from pages._overview import parts as overview_parts
from pages._ui import parts, session


def draw(checkpoint: Opened, overview: Overview, figure: Figure) -> overview_parts.Picked | None:
    """Draw it; numbers are read when colors are to tell them.

    Returns:
        What was clicked.
    """
    portrait = portray(overview)
    checks: Checks | None = session.at_hand(CheckRequest())
    color = overview_parts.choose_color(portrait, numbers=not session.is_preview(checkpoint))
    if color == "rms":
        checks = session.ask(CheckRequest())
    rms = checks.rms if checks else ()
    paint = partial(
        portrait_figure,
        portrait,
        title=f"What {overview.name} consists of",
        subtitle=portrait_subtitle(color, checks.values if checks else "none"),
        color=color,
        rms=rms,
    )
    with parts.place("portrait_place"):
        picked = parts.clickable(
            parts.drawn(lambda theme: paint(theme=theme), narrow=lambda theme: paint(narrow=True, theme=theme)),
            key=figure.name,
            alt=figure.alt,
        )
    found = portrait.parts[picked[0] : picked[0] + 1] if picked else ()
    return overview_parts.Picked(found[0], rms) if found else None
