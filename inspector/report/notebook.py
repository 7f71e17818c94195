"""A notebook that shows a report's tables and figures, and computes its numbers anew."""

from __future__ import annotations

import json
from dataclasses import MISSING
from typing import Any

from inspector.report import provenance
from inspector.report.content import AnsweredSection, Context, Report
from inspector.request import Request, beside, defaults
from inspector.results.checkpoint import Opened
from inspector.text import in_code

COMPUTING = "These cells need the package `checkpoint-inspector`, and do nothing without it."

START = """\
import json
import re
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go

PAGE = Path("report.html").read_text("utf-8")  # this notebook lies in the folder of the report


def table(name):
    \"\"\"One table of the report.\"\"\"
    return pd.read_csv(f"tables/{name}.csv")


def figure(name):
    \"\"\"One figure of the report, to be changed and drawn again.\"\"\"
    data = re.search(rf'id="data-{name}"[^>]*>(.*?)</script>', PAGE, re.DOTALL)
    return go.Figure(json.loads(data[1])["light"])
"""
AGAIN = """\
checkpoint = None
if find_spec("inspector"):
    import inspector

    checkpoint = inspector.open({source})  # or your own folder, archive or hub id of it
    files = {{file.name: file.sha256 for file in checkpoint.overview(hash_files=True).files}}
    assert files == {files!r}, "This is another checkpoint: its files differ."
"""
FORMAT = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    },
}


def write_notebook(report: Report) -> str:
    """Write the report's tables, figures and questions as cells, in nbformat 4.5."""
    facts = "\n".join(f"- {name}: {in_code(value)}" for name, value in report.provenance.items())
    head = f"# {in_code(report.name)}\n\nThis notebook shows the tables and figures of the report.\n\n{facts}"
    cells = [_text(head), _code(START)]
    for part in report.parts:
        cells += _cells(part)
    cells += _again(report)
    numbered = [{"id": f"cell-{place}", **cell} for place, cell in enumerate(cells)]
    return json.dumps({"cells": numbered, **FORMAT}, indent=1, ensure_ascii=False) + "\n"


def _cells(part: AnsweredSection) -> list[dict[str, Any]]:
    text = f"## {part.title}\n\n{part.question}"
    if part.absent:
        return [_text(f"{text}\n\n{in_code(part.absent)}")]
    shown = [f'display(figure("{part.slug}-{drawn.name}"))' for drawn in part.figures]
    shown += [f'display(table("{part.slug}-{tabled.name}"))' for tabled in part.tables]
    return [_text(text), *([_code("\n".join(shown))] if shown else [])]


def _again(report: Report) -> list[dict[str, Any]]:
    """Cells that compute the answers anew."""
    start = AGAIN.format(
        source=_source(report.context.opened), files={file.name: file.sha256 for file in report.context.overview.files}
    )
    cells = [_text(f"## Compute the numbers again\n\n{COMPUTING}"), _code(start)]
    for part in report.parts:
        if not part.absent:
            asked = [
                f"    {part.slug}_{place} = checkpoint.ask({_asked(request, report.context)})\n"
                f"    display({part.slug}_{place}.to_frame())"
                for place, request in enumerate(part.requests, start=1)
            ]
            cells.append(_code("\n".join(["if checkpoint:", *asked])))
    return cells


def _source(opened: Opened) -> str:
    """The arguments of `inspector.open`."""
    adapter = f", adapter={provenance.source(opened.adapter)!r}" if opened.adapter else ""
    return f"{provenance.source(opened)!r}{adapter}"


def _asked(request: Request, context: Context) -> str:
    """The arguments of `Checkpoint.ask` that ask the same; defaults are left out."""
    usual = defaults(type(request))
    given = {name: value for name, value in request.parameters().items() if value != usual.get(name, MISSING)}
    given |= {name: provenance.source(context.beside[name]) for name in beside(given)}
    return ", ".join([repr(request.verb), *(f"{name}={value!r}" for name, value in given.items())])


def _text(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": text.splitlines(keepends=True),
    }
