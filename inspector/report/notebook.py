"""A notebook that computes a report's numbers anew, with the command line's own JSON."""

from __future__ import annotations

import json
from typing import Any

from inspector.report import provenance
from inspector.report.content import Context, Part, Report
from inspector.text import in_code

START = """\
import json
import subprocess
import sys

import pandas as pd

CHECKPOINT = {source!r}  # or your own folder, archive or hub id of it


def ask(verb, *options):
    \"\"\"Run one verb of the inspector and read its JSON.\"\"\"
    command = [sys.executable, "-m", "inspector", verb, CHECKPOINT, *options, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)


def show(answer):
    \"\"\"Single values as one table, and each list of rows as one of its own.\"\"\"
    rows = {{k: v for k, v in answer.items() if isinstance(v, list) and v and isinstance(v[0], dict)}}
    facts = {{k: v for k, v in answer.items() if k not in rows}}
    tables = [pd.Series(facts, name="value", dtype=object).to_frame()]
    return tables + [pd.DataFrame(v).head(20).rename_axis(k) for k, v in rows.items()]


files = {{file["name"]: file["sha256"] for file in ask("overview", "--hash")["files"]}}
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
    """Write the report's questions as cells, one a section, in nbformat 4.5."""
    facts = "\n".join(f"- {name}: {in_code(value)}" for name, value in report.provenance.items())
    head = f"# {in_code(report.name)}\n\nThis notebook recomputes the numbers of the report.\n\n{facts}"
    start = START.format(
        source=provenance.source(report.context.opened),
        files={file.name: file.sha256 for file in report.context.overview.files},
    )
    cells = [_text(head), _code(start)]
    for part in report.parts:
        cells += _cells(part, report.context)
    numbered = [{"id": f"cell-{place}", **cell} for place, cell in enumerate(cells)]
    return json.dumps({"cells": numbered, **FORMAT}, indent=1, ensure_ascii=False) + "\n"


def _cells(part: Part, context: Context) -> list[dict[str, Any]]:
    text = f"## {part.title}\n\n{part.question}"
    if part.absent:
        return [_text(f"{text}\n\n{in_code(part.absent)}")]
    asked = [
        f"{part.slug}_{place} = ask({', '.join(map(repr, provenance.typed(context, request)))})"
        for place, request in enumerate(part.requests, start=1)
    ]
    shown = [f"display(*show({line.partition(' = ')[0]}))" for line in asked]
    return [_text(text), _code("\n".join([*asked, *shown]))]


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
