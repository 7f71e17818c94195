"""What is in the checkpoint: from its headers alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.result import Overview
from inspector.analyses.overview.words import HEADS, details
from inspector.report.content import Block, Context, Facts, Said, Section, Tabled
from inspector.text import bytes_text


def show(_: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """Facts, heads, files and tensors."""
    overview: Overview = answers[0]
    yield Facts(_facts(overview))
    present = [head for head, state in overview.heads.items() if state == "present"]
    yield Said(
        "The heads below are determined from the weights in the files. "
        + (
            "No prediction in this report uses an absent head."
            if present
            else "This checkpoint has none, so this report has no predictions."
        )
    )
    yield Tabled(
        "heads",
        "Heads",
        pd.DataFrame(
            {"head": HEADS[head][0], "answers": HEADS[head][1], "in_the_files": state}
            for head, state in overview.heads.items()
        ),
    )
    yield Tabled(
        "files",
        "Files",
        pd.DataFrame({"name": file.name, "format": file.format, "nbytes": file.nbytes} for file in overview.files),
    )
    yield Tabled("tensors", "Stored tensors", overview.tensors)


def _facts(overview: Overview) -> dict[str, str]:
    return {
        "Parameters": f"{overview.unique_parameters:,}, counting each stored number once",
        "Layers": _number(overview.layers),
        "Hidden size": _number(overview.d_model),
        "Vocabulary rows": _number(overview.vocab_rows),
        "On disk": f"{bytes_text(overview.nbytes_on_disk)}, all files",
        "In memory": f"{bytes_text(overview.nbytes_in_memory)}, the weights as they are stored",
        **details(overview),
    }


def _number(value: int | None) -> str:
    return "not stated" if value is None else f"{value:,}"


SECTION = Section("overview", ask=lambda _: (OverviewRequest(),), show=show)
