"""What each layer's hidden state says in tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from inspector.analyses.lens import words
from inspector.analyses.lens.figures import token_heatmap
from inspector.analyses.lens.figures_colors import Coloring, color_cells
from inspector.analyses.lens.figures_lines import rung_lines
from inspector.analyses.lens.request import LensRequest
from inspector.analyses.lens.result import Lens
from inspector.report.content import Context, Section
from inspector.view.blocks import Block, Bullets, Figure, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View, Why


def view(lens: Lens, request: LensRequest, *, name: str) -> View:
    """The heat map of the last step, how far it can be trusted, and how the steps agree."""
    rung = lens.rungs[-1]
    cells, coloring = last_step(lens)
    return View(
        Headline(words.headline(lens, request.text)),
        picture=Picture(
            Figure(
                "heatmap",
                lambda theme: token_heatmap(
                    cells,
                    tokens=lens.tokens,
                    layers=lens.layers,
                    theme=theme,
                    title=f"Top tokens of {name}",
                    subtitle=f"by {rung}, layers by positions",
                    coloring=coloring,
                ),
                f"Top token by {rung} at every layer and position",
            )
        ),
        beside=(Sentence(f"The text: {request.text}"), Sentence(words.agreement(lens))),
        tabs=(Tab("Head steps", lambda: _steps(lens, name)), Tab("Cells", lambda: _cells(lens, request))),
        why=(Why(words.WHY_STEPS, words.WHY),),
    )


def last_step(lens: Lens) -> tuple[pd.DataFrame, Coloring]:
    """The cells of the head's last step, and what colors them."""
    rung = lens.rungs[-1]
    cells = pd.DataFrame(lens.cells[lens.cells["rung"] == rung])
    by = "cosine" if rung == "cosine" else "probability"
    return cells, color_cells(by, cells=cells, states=lens.states, pinned=lens.pinned)


def _steps(lens: Lens, name: str) -> Iterator[Block]:
    yield Sentence("The steps of the head, in order:")
    yield Bullets(words.steps(lens))
    yield Sentence(words.best_by_cosine(lens))
    if "agrees" in lens.states:
        yield Figure(
            "agreement",
            lambda theme: rung_lines(
                lens.states, measure="agrees", rungs=lens.rungs, layers=lens.layers, name=name, theme=theme
            ),
            "How often each step's top token is the model's final one, over layers",
        )


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
