"""What each layer's hidden state says in tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from inspector.analyses.lens import words
from inspector.analyses.lens.figures import token_heatmap
from inspector.analyses.lens.figures_lines import rung_lines
from inspector.analyses.lens.request import LensRequest
from inspector.analyses.lens.result import Lens
from inspector.report.content import Block, Context, Drawn, Listed, Said, Section, Tabled
from inspector.request import Request


def ask(context: Context) -> tuple[Request, ...]:
    """The lens on the report's text."""
    return (_request(context),)


def _request(context: Context) -> LensRequest:
    setting = context.setting
    return LensRequest(text=setting.text, device=setting.device, dtype=setting.dtype)


def show(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """The heat map of the last step, how far it can be trusted, and how the steps agree."""
    lens: Lens = answers[0]
    rung = lens.rungs[-1]
    yield Said(f"The text: {context.setting.text}")
    yield Said(words.agreement(lens))
    cells = pd.DataFrame(lens.cells[lens.cells["rung"] == rung])
    yield Drawn(
        "heatmap",
        lambda theme: token_heatmap(
            cells,
            tokens=lens.tokens,
            layers=lens.layers,
            theme=theme,
            title=f"Top tokens of {context.name}",
            subtitle=f"by {rung}, layers by positions",
            coloring=None if rung != "cosine" else _by_cosine(cells, lens),
        ),
        f"Top token by {rung} at every layer and position",
    )
    yield Said("The steps of the head, in order:")
    yield Listed(words.steps(lens))
    yield Said(words.best_by_cosine(lens))
    yield Said(words.WHY)
    if "agrees" in lens.states:
        yield Drawn(
            "agreement",
            lambda theme: rung_lines(
                lens.states, measure="agrees", rungs=lens.rungs, layers=lens.layers, name=context.name, theme=theme
            ),
            "How often each step's top token is the model's final one, over layers",
        )
    yield Tabled("cells", f"Tokens of each cell ({_request(context).k} per step)", lens.cells)
    yield Tabled("states", "Entropy and agreement of each state", lens.states, rows=12)


def _by_cosine(cells: pd.DataFrame, lens: Lens) -> Any:
    from inspector.analyses.lens.figures_colors import color_cells

    return color_cells("cosine", cells=cells, states=lens.states, pinned=lens.pinned)


SECTION = Section("lens", ask=ask, show=show, query=lambda c: _request(c).to_query())
