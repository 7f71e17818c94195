"""Write a report as Markdown, for a README or an issue, with its figures as files in a folder beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from inspector.report.content import AnsweredSection, Report
from inspector.text import literal, visible
from inspector.view.blocks import Bullets, Code, Facts, Figure, Sentence, Table
from inspector.view.cells import cell_text, column_label, is_amount
from inspector.view.view import Element, Heading, Headline, Why

if TYPE_CHECKING:
    import pandas as pd

PICTURE = re.compile(r"^!\[(.*)\]\([^)]*\)$", re.MULTILINE)  # a stranger's text has its marks escaped


def write_markdown(report: Report, folder: str) -> str:
    """Write the report as GitHub's Markdown; text of strangers is escaped.

    Args:
        folder: Where the pictures are, seen from the file.
    """
    lines = [f"# {literal(report.name)}", f"Created on {report.made}."]
    for part in report.parts:
        lines += _part(part, folder)
    lines += ["## Provenance", _facts(Facts(report.provenance)), _code(report.command)]
    return "\n\n".join(lines) + "\n"


def without_pictures(text: str) -> str:
    """The same with the figures' descriptions in their places."""
    return PICTURE.sub(r"*\1*", text)


def _part(part: AnsweredSection, folder: str) -> Iterator[str]:
    yield f"## {literal(part.title)}"
    yield literal(part.question)
    for note in filter(None, (part.absent, *part.notes)):
        yield f"> {literal(note)}"
    for element in part.elements:
        yield from _element(element, f"{folder}/{part.slug}")
    if part.commands:
        yield _code("\n".join(part.commands))


def _element(element: Element, start: str) -> Iterator[str]:
    if isinstance(element, Figure):
        yield f"![{literal(element.alt)}]({start}-{element.name}.png)"
    elif isinstance(element, Table):
        yield from _table(element)
    elif text := _TEXTS[type(element)](element):
        yield text


def _table(table: Table) -> Iterator[str]:
    lines = table.lines
    yield f"**{literal(table.title)}**"
    if not len(lines.columns):
        return
    yield table_markdown(lines.head(table.rows))
    if table.rows < len(lines):
        yield f"{table.rows:,} of {len(lines):,} rows are shown."


def table_markdown(frame: pd.DataFrame) -> str:
    """Write a table as GitHub's Markdown; text of strangers is escaped."""
    rows = frame.to_dict("records")
    right = [bool(rows) and is_amount(rows[0][name]) for name in frame.columns]
    head = [literal(column_label(name)) for name in frame.columns]
    body = [[literal(cell_text(value, str(name))) for name, value in row.items()] for row in rows]
    return "\n".join(_row(cells) for cells in [head, ["--:" if each else "---" for each in right], *body])


def _facts(facts: Facts) -> str:
    rows = [[literal(name), literal(value)] for name, value in facts.pairs.items()]
    return "\n".join(_row(cells) for cells in [["Property", "Value"], ["---", "---"], *rows])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    """Lines of code; a fence in them cannot end the block."""
    fence = "`" * max([3, *(len(each) + 1 for each in re.findall("`{3,}", text))])
    return "\n".join([fence, *map(visible, text.split("\n")), fence])


_TEXTS: dict[type, Callable[[Any], str]] = {
    Headline: lambda each: f"**{literal(each.text)}**",
    Heading: lambda each: f"### {literal(each.text)}",
    Why: lambda each: f"**{literal(each.question)}** {literal(each.answer)}",
    Sentence: lambda each: literal(each.text),
    Bullets: lambda each: "\n".join(f"- {literal(item)}" for item in each.items),
    Facts: _facts,
    Code: lambda each: _code(each.text),
}
