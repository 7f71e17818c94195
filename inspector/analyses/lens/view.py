"""What each layer's hidden state says in tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.lens import words
from inspector.analyses.lens.figures import token_heatmap
from inspector.analyses.lens.figures_colors import Coloring, color_cells
from inspector.analyses.lens.figures_lines import MEASURES, rung_lines
from inspector.analyses.lens.frames import typed_marks
from inspector.analyses.lens.request import LensRequest
from inspector.analyses.lens.result import Lens
from inspector.plotting.theme import Theme
from inspector.report.content import Context, Section
from inspector.view.blocks import Block, Bullets, Figure, Grid, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View, Why


def view(lens: Lens, request: LensRequest, *, name: str) -> View:
    """The heat map of the last step, how far it can be trusted, and how the steps agree."""
    rung = lens.rungs[-1]
    cells, coloring = last_step(lens)

    def draw(theme: Theme, *, narrow: bool = False) -> go.Figure:
        return token_heatmap(
            cells,
            tokens=lens.tokens,
            layers=lens.layers,
            theme=theme,
            title=f"Top tokens of {name}",
            subtitle=f"by {rung}, colored by {coloring.name}",
            coloring=coloring,
            emphasized=typed_marks(lens.tokens, request.text),
            narrow=narrow,
        )

    return View(
        Headline(words.headline(lens, request.text)),
        picture=Picture(
            Figure(
                "heatmap", draw, f"Top token by {rung} at every layer and position", narrow=partial(draw, narrow=True)
            ),
            _grid(lens, cells, coloring),
        ),
        beside=(Sentence(words.agreement(lens)),),
        more="--json prints -k tokens of every cell at every step of the head.",
        tabs=(
            Tab("Early answer", lambda: _early(lens, name)),
            Tab("Head steps", lambda: _steps(lens, request)),
            Tab("Cells", lambda: _cells(lens, request)),
        ),
        why=(
            Why(words.WHY_COSINE, words.best_by_cosine(lens)),
            Why(words.WHY_STEPS, words.WHY),
            Why(words.WHY_TYING, words.TYING),
        ),
    )


def last_step(lens: Lens) -> tuple[pd.DataFrame, Coloring]:
    """The cells of the head's last step, and what colors them."""
    rung = lens.rungs[-1]
    cells = pd.DataFrame(lens.cells[lens.cells["rung"] == rung])
    by = "cosine" if rung == "cosine" else "probability"
    return cells, color_cells(by, cells=cells, states=lens.states, pinned=lens.pinned)


def _grid(lens: Lens, cells: pd.DataFrame, coloring: Coloring) -> Grid:
    """The heat map as text, the last layer on top."""
    rung = lens.rungs[-1]
    tops = {(row["layer"], row["position"]): row["token"] for row in cells.to_dict("records") if row["rank"] == 0}
    layers = sorted({layer for layer, _ in tops}, reverse=True)
    places = range(len(lens.tokens))
    reach = (coloring.high - coloring.low) or 1.0

    def shade(layer: int, position: int) -> float | None:
        value = coloring.values.get((layer, position), math.nan)
        return min(max((value - coloring.low) / reach, 0.0), 1.0) if math.isfinite(value) else None

    return Grid(
        tuple(lens.layers[layer] if layer else "emb." for layer in layers),
        lens.tokens,
        tuple(tuple(tops.get((layer, place), "") for place in places) for layer in layers),
        tuple(tuple(shade(layer, place) for place in places) for layer in layers),
        f"{coloring.name} of the top token" + (f" by {rung}" if rung != coloring.name else ""),
    )


def _early(lens: Lens, name: str) -> Iterator[Block]:
    if "agrees" not in lens.states:
        yield Sentence(words.agreement(lens))
        return
    yield Sentence(words.MEANS)
    for measure, title in MEASURES.items():
        yield Figure(
            measure,
            lambda theme, measure=measure: rung_lines(
                lens.states, measure=measure, rungs=lens.rungs, layers=lens.layers, name=name, theme=theme
            ),
            f"{title}, over layers, a line for each step of the head",
        )


def _steps(lens: Lens, request: LensRequest) -> Iterator[Block]:
    yield Sentence(f"The text: {request.text}")
    yield Sentence("The steps of the head, in order:")
    yield Bullets(words.steps(lens))


def _cells(lens: Lens, request: LensRequest) -> Iterator[Block]:
    yield Table("cells", f"Tokens of each cell ({request.k} per step)", lens.cells)
    if len(lens.pinned):
        yield Table("pinned", "Ranks of the pinned tokens", lens.pinned)
    yield Table("states", "Entropy and agreement of each state", lens.states, rows=12)


def _asked(context: Context) -> LensRequest:
    """The lens on the report's text."""
    setting = context.setting
    return LensRequest(text=setting.text, device=setting.device, dtype=setting.dtype)


SECTION = Section("lens", ask=lambda context: (_asked(context),), query=lambda context: _asked(context).to_query())
