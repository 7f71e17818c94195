"""Numbers of one snapshot, and of a run's snapshots over its steps."""

from __future__ import annotations

from inspector.analyses.snapshots import words
from inspector.analyses.snapshots.figures import step_lines, verdict_grid
from inspector.analyses.snapshots.frames import OverSteps, Series
from inspector.analyses.snapshots.request import VitalsRequest
from inspector.analyses.snapshots.result import Vitals
from inspector.text import shape_text
from inspector.view.blocks import Facts, Figure, Table
from inspector.view.view import Headline, Picture, Tab, View, Why

CELLS = {  # column of what was said at each snapshot -> what a grid of verdicts calls it
    "ties": {"group": "row", "verdict": "verdict", "reason": "detail"},
    "checks": {"check": "row", "status": "verdict", "detail": "detail"},
}
ROWS = {"ties": "group", "checks": "check"}


def view(result: Vitals | OverSteps, request: VitalsRequest, *, name: str) -> View:
    """The norms, and the tokens that are followed; of a run a quantity over its steps."""
    if isinstance(result, OverSteps):
        return _of_verdicts(result, name) if result.series is None else _of_numbers(result, result.series, name)
    norms = result.norms
    return View(
        Headline(words.headline(result)),
        beside=(
            Facts(
                {
                    "Matrix": f"{result.tensor}, {shape_text((result.rows, result.columns))}",
                    "Norms": f"{norms.min:.4f} to {norms.max:.4f}, median {norms.median:.4f}",
                    "Padding": "none"
                    if result.pad_norm is None
                    else f"{result.pad_token} (id {result.pad_id}), norm {result.pad_norm:.4f}",
                }
            ),
            *([Table("tokens", "Tokens followed", result.tokens)] if len(result.tokens) else []),
        ),
        more=words.SEVERAL,
    )


def _of_numbers(result: OverSteps, series: Series, name: str) -> View:
    quantity, measure = result.quantity, words.MEASURES[result.quantity]
    lines, title = series.lines(quantity), words.figure_title(quantity, name, series)
    look = {"measure": measure, "evenly": result.evenly, "title": title, "subtitle": result.counted}
    figure = Figure(
        "lines",
        lambda theme: step_lines(lines, theme=theme, **look),
        f"{measure} over training steps; the table below lists the numbers",
    )
    return _over_steps(Headline(words.ends(lines, measure)), figure, result)


def _of_verdicts(result: OverSteps, name: str) -> View:
    quantity = result.quantity
    cells, title = result.frame.rename(columns=CELLS[quantity]), words.figure_title(quantity, name, None)
    figure = Figure(
        "verdicts",
        lambda theme: verdict_grid(cells, title=title, subtitle=result.counted, theme=theme),
        "A verdict for each snapshot; the table below lists them",
    )
    return _over_steps(Headline(words.turns(cells, ROWS[quantity])), figure, result)


def _over_steps(headline: Headline, figure: Figure, result: OverSteps) -> View:
    frame = result.frame.drop(columns="place", errors="ignore")
    return View(
        headline,
        picture=Picture(figure),
        tabs=(Tab("Table", lambda: [Table(result.quantity, "The numbers of the figure", frame)]),),
        why=(Why(words.WHY, words.READS[result.quantity]),),
    )
