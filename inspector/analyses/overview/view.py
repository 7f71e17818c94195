"""What is in the checkpoint: from its headers alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from inspector.analyses.overview import words
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.report.content import Section
from inspector.text import bytes_text
from inspector.view.blocks import Block, Facts, Figure, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View

if TYPE_CHECKING:  # half a second of every verb
    import plotly.graph_objects as go

    from inspector.plotting.theme import Theme


def view(overview: Overview, request: OverviewRequest, *, name: str) -> View:
    """Facts, heads, files and tensors."""
    return View(
        Headline(words.headline(overview), "note" if overview.warnings else "ok"),
        picture=_portrait(overview),
        beside=(Facts(_facts(overview)),),
        tabs=(
            Tab("Heads", lambda: _heads(overview)),
            Tab("Files", lambda: _files(overview)),
            Tab("Tensors", lambda: [Table("tensors", "Stored tensors", overview.tensors)]),
        ),
    )


def _portrait(overview: Overview) -> Picture | None:
    if not overview.stored.names:
        return None
    alt = "Every stored matrix as a rectangle with an area by its parameters; the table of tensors lists them"
    return Picture(Figure("portrait", lambda theme: _draw(overview, theme), alt))


def _draw(overview: Overview, theme: Theme) -> go.Figure:
    from inspector.analyses.overview.figures import portrait_figure
    from inspector.analyses.overview.figures_parts import portray

    title = f"What {overview.name} consists of"
    return portrait_figure(portray(overview), title=title, subtitle=words.PORTRAIT, theme=theme)


def _heads(overview: Overview) -> Iterator[Block]:
    import pandas as pd

    present = [head for head, state in overview.heads.items() if state == "present"]
    yield Sentence(words.HEADS_BY_WEIGHTS + " " + (words.NO_ABSENT_HEAD if present else words.NO_HEAD))
    yield Table(
        "heads",
        "Heads",
        pd.DataFrame(
            {"head": words.HEADS[head][0], "answers": words.HEADS[head][1], "in_the_files": state}
            for head, state in overview.heads.items()
        ),
    )


def _files(overview: Overview) -> Iterator[Block]:
    import pandas as pd

    columns = {file.name: (file.format, file.nbytes, file.sha256) for file in overview.files}
    frame = pd.DataFrame(
        [(file, *rest) for file, rest in columns.items()], columns=["name", "format", "nbytes", "sha256"]
    )
    yield Table("files", "Files", frame.dropna(axis="columns", how="all"))


def _facts(overview: Overview) -> dict[str, str]:
    return {
        "Parameters": f"{overview.unique_parameters:,}, counting each stored number once",
        "Layers": _number(overview.layers),
        "Hidden size": _number(overview.d_model),
        "Vocabulary rows": _number(overview.vocab_rows),
        "On disk": f"{bytes_text(overview.nbytes_on_disk)}, all files",
        "In memory": f"{bytes_text(overview.nbytes_in_memory)}, the weights as they are stored",
        **words.details(overview),
    }


def _number(value: int | None) -> str:
    return "not stated" if value is None else f"{value:,}"


SECTION = Section("overview", ask=lambda _: (OverviewRequest(),))
