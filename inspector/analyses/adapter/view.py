"""What an adapter changes."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.adapter import words
from inspector.analyses.adapter.figures import cell_of, grid, has_picture, norm_map
from inspector.analyses.adapter.request import AdapterRequest
from inspector.analyses.adapter.result import Adapter
from inspector.view.blocks import Block, Bullets, Facts, Figure, Grid, Table
from inspector.view.view import Headline, Picture, Tab, View, Why

MOST_LAYERS = 36  # columns of the text picture


def view(adapter: Adapter, request: AdapterRequest, *, name: str) -> View:
    """The change in a sentence, its norm by layer and kind, and every weight."""
    return View(
        Headline(words.headline(adapter), words.judged(adapter)),
        picture=_picture(adapter) if has_picture(adapter.targets) else None,
        beside=(Facts(words.facts(adapter)),),
        tabs=(
            Tab("Weights", lambda: _weights(adapter)),
            *([Tab("Brought whole", lambda: [Bullets(adapter.replaced)])] if adapter.replaced else []),
        ),
        why=tuple(Why(question, answer) for question, answer in words.WHY),
        more="--base MODEL says what of the change a merge into it will keep; --json prints every weight.",
    )


def _picture(adapter: Adapter) -> Picture:
    return Picture(
        Figure(
            "norms",
            lambda theme: norm_map(adapter.targets, title=words.title(adapter), subtitle=words.SUBTITLE, theme=theme),
            "The norm of the change by kind and layer; the table of weights has every number",
        ),
        _text(adapter),
    )


def _text(adapter: Adapter) -> Grid | None:
    across, down, cells = grid(adapter.targets)
    if len(across) > MOST_LAYERS:
        return None
    found = [[cell_of(adapter.targets, cells[kind, layer]) if (kind, layer) in cells else None for layer in across]
             for kind in down]  # fmt: skip
    largest = max((each[0] for row in found for each in row if each and each[0] > 0), default=1.0)
    return Grid(
        tuple(down),
        tuple(across),
        tuple(tuple(each[1] if each else "" for each in row) for row in found),
        tuple(tuple(each[0] / largest if each and each[0] >= 0 else None for each in row) for row in found),
        "norm of the change; ∅ changes nothing, ! is not finite",
    )


def _weights(adapter: Adapter) -> Iterator[Block]:
    yield Table("weights", "Every weight that it changes", adapter.targets.drop(columns=["layer", "kind"]), by="module")
