"""What is in the checkpoint: from its headers alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from inspector.analyses.adapter.request import AdapterRequest
from inspector.analyses.overview import words
from inspector.analyses.overview.frames import file_table, module_tree
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import ListedTensor, Overview
from inspector.analyses.overview.result_gguf import GgufFacts
from inspector.report.content import Context, Section
from inspector.request import Request
from inspector.text import bytes_text, plural
from inspector.view.blocks import Block, Bullets, Code, Facts, Figure, Sentence, Table
from inspector.view.view import Headline, Picture, Tab, View

if TYPE_CHECKING:  # half a second of every verb
    import plotly.graph_objects as go

    from inspector.plotting.theme import Theme


def view(overview: Overview, request: OverviewRequest, *, name: str) -> View:
    """The modules with their sizes, facts, heads, files and tensors; only the listed tensors if some were asked for."""
    if overview.listed_tensors is not None:
        return _listed(overview.listed_tensors, request, name)
    return View(
        Headline(words.headline(overview), "note" if overview.warnings else None),
        picture=_portrait(overview),
        beside=(Facts(_facts(overview)), *([_files(overview)] if request.hash_files else [])),
        tabs=(
            Tab("Heads", lambda: _heads(overview)),
            *([] if request.hash_files else [Tab("Files", lambda: [_files(overview)])]),
            *([Tab("Quantization", lambda: quantization(overview))] if overview.gguf else []),
            Tab("Tensors", lambda: [Table("tensors", "Stored tensors", overview.tensors)]),
        ),
        more=words.MORE_OF_ADAPTER if overview.adapter else words.MORE,
    )


def quantization(overview: Overview) -> Iterator[Block]:
    """The types of a GGUF file's tensors by layer and kind, and what it says of itself."""
    import pandas as pd

    if (facts := overview.gguf) is None:
        return
    alt = "The type of each tensor by layer and kind, the darker the more bits a number takes"
    yield Figure("quantization", lambda theme: _draw_blocks(overview, facts, theme), alt)
    types = pd.DataFrame({"type": list(facts.types), "parameters": list(facts.types.values())})
    yield Table("types", "Types", types, by="type")
    pairs = pd.DataFrame({"key": list(facts.metadata), "value": list(facts.metadata.values())})
    yield Table("metadata", "Metadata of the file", pairs, by="key")
    if template := facts.metadata.get("tokenizer.chat_template"):
        yield Sentence(words.CHAT_TEMPLATE)
        yield Code(template)


def _draw_blocks(overview: Overview, facts: GgufFacts, theme: Theme) -> go.Figure:
    from inspector.analyses.overview.figures_gguf import block_map

    title = f"How {overview.name} stores its tensors"
    return block_map(facts, title=title, subtitle=f"Bits a number: {words.bits(facts)}", theme=theme)


def _listed(tensors: tuple[ListedTensor, ...], request: OverviewRequest, name: str) -> View:
    found = f" that match “{request.find}”" if request.find else ""
    return View(
        Headline(f"{name}: {words.total(tensors)}{found}."), beside=(Bullets(tuple(words.tensor_lines(tensors))),)
    )


def _portrait(overview: Overview) -> Picture | None:
    if not overview.stored.names:
        return None
    alt = "Every stored matrix as a rectangle with an area by its parameters; the table of tensors lists them"
    narrow = partial(_draw, overview, narrow=True)
    return Picture(Figure("portrait", partial(_draw, overview), alt, narrow=narrow), module_tree(overview))


def _draw(overview: Overview, theme: Theme, *, narrow: bool = False) -> go.Figure:
    from inspector.analyses.overview.figures import portrait_figure
    from inspector.analyses.overview.figures_parts import portray

    title = f"What {overview.name} consists of"
    return portrait_figure(portray(overview), title=title, subtitle=words.PORTRAIT, narrow=narrow, theme=theme)


def _heads(overview: Overview) -> Iterator[Block]:
    import pandas as pd

    present = [head for head, state in overview.all_heads.items() if state == "present"]
    yield Sentence(f"{words.HEADS_BY_WEIGHTS} {words.NO_ABSENT_HEAD if present else words.NO_HEAD}")
    yield Table(
        "heads",
        "Heads",
        pd.DataFrame(
            {"head": words.HEADS[head][0], "answers": words.HEADS[head][1], "in_the_files": state}
            for head, state in overview.all_heads.items()
        ),
    )


def _files(overview: Overview) -> Table:
    return Table("files", "Files", file_table(overview).drop(columns="linked_from", errors="ignore"))


def _facts(overview: Overview) -> dict[str, str]:
    heads = {state: [words.HEADS[head][0] for head, each in overview.all_heads.items() if each == state]
             for state in ("present", "absent")}  # fmt: skip
    return {
        "Parameters": f"{overview.unique_parameters:,}, counting each stored number once",
        "Layers": _number(overview.layers),
        "Hidden size": _number(overview.d_model),
        "Vocabulary rows": _number(overview.vocab_rows),
        "Files": f"{plural(len(overview.files), 'file')}, {bytes_text(overview.nbytes_on_disk)}",
        "In memory": f"{bytes_text(overview.nbytes_in_memory)}, the weights as they are stored",
        **words.details(overview),
        "Heads present": ", ".join(heads["present"]) or "none",
        "Heads absent": ", ".join(heads["absent"]) or "none",
    }


def _number(value: int | None) -> str:
    return "not stated" if value is None else f"{value:,}"


def _ask(context: Context) -> tuple[Request, ...]:
    return (OverviewRequest(), AdapterRequest()) if context.overview.adapter else (OverviewRequest(),)


SECTION = Section("overview", ask=_ask)
