"""What a change did to a model's ties."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from inspector.analyses.what_if import words
from inspector.analyses.what_if.request import WhatIfRequest
from inspector.analyses.what_if.result import WhatIf
from inspector.view.blocks import Block, Bullets, Code, Sentence, Table
from inspector.view.view import Headline, Tab, Verdict, View

COLUMNS = ["name", "before", "after", "saved_and_loaded", "after_training"]


def view(result: WhatIf, request: WhatIfRequest, *, name: str) -> View:
    """What each way did to ties, sizes and losses."""
    return View(
        Headline(result.answer, _verdict(result)),
        beside=(_ways(result), *([_names(result)] if len(result.table) else [])),
        more="--json prints how far each name moved, the code of each way, and what its file holds.",
        tabs=(Tab("Code", lambda: _code(result)), Tab("Every number", lambda: _numbers(result))),
    )


def _verdict(result: WhatIf) -> Verdict:
    tied = [edge for way in result.ways for edge in way.edges if edge.before == words.TIED]
    broken = any(edge.after != words.TIED or edge.reloaded not in (None, words.TIED) for edge in tied)
    lost = any(way.file and (way.file.random or way.file.refused) for way in result.ways)
    return "warning" if broken or lost else "ok" if result.ways else "note"


def _ways(result: WhatIf) -> Table:
    ways = pd.DataFrame(
        {
            "way": way.title,
            "parameters": way.unique_parameters,
            "memory_nbytes": way.nbytes,
            "file_nbytes": way.file.nbytes if way.file else None,
            "loss": way.training.loss if way.training else None,
            "loss_after": way.training.loss_after if way.training else None,
        }
        for way in (result.original, *result.ways)
    )
    return Table("ways", "Sizes and losses", ways.astype({"file_nbytes": "Int64"}))


def _names(result: WhatIf) -> Table:
    changed = result.table[result.table["way"] != result.original.title]
    columns = ["way", *COLUMNS] if len(result.ways) > 1 else COLUMNS
    return Table("ties", "Names that were one tensor, or could be", pd.DataFrame(changed[columns]))


def _code(result: WhatIf) -> Iterator[Block]:
    for way in result.ways:
        yield Sentence(way.title)
        yield Code(way.code, "python")
        yield Bullets(tuple(words.sizes(result, way)))


def _numbers(result: WhatIf) -> Iterator[Block]:
    if len(result.table):
        yield Table("names", "Every number of every name", result.table)
