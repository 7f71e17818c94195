"""Write a report as one HTML file that asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pandas.api.types import is_bool_dtype, is_numeric_dtype
from plotly.offline import get_plotlyjs

from inspector.report.content import Block, Code, Drawn, Facts, Listed, Part, Report, Said, Tabled
from inspector.report.provenance import content_fingerprint
from inspector.report.recolor import both
from inspector.text import bytes_text, text_html

ASSETS = Path(__file__).parent / "assets"
IDS = ("id", "position", "layer", "update", "step", "start", "end")  # numbers that are names
LONGEST = 400  # characters of a cell; the CSV has all of them


def write_page(report: Report) -> str:
    """Write the report as HTML.

    All text is escaped, and the page's own policy forbids whatever is not in it: two scripts run,
    known by their hashes, and nothing is loaded.

    Returns:
        The same text for the same report, but for its date.
    """
    scripts = [get_plotlyjs(), (ASSETS / "report.js").read_text("utf-8")]
    style = (ASSETS / "report.css").read_text("utf-8")
    body = "\n".join([_head(report), *map(_section, report.parts), _provenance(report)])
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{text_html(report.name)}: a report of Checkpoint Inspector</title>",
            f"<style>{style}</style></head><body><main>",
            body,
            "</main>",
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>\n",
        ]
    )


def _policy(scripts: list[str]) -> str:
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _head(report: Report) -> str:
    contents = "".join(
        f'<li><a href="#{part.slug}">{text_html(part.title)}</a>'
        f"{' <span class=absent>not in this checkpoint</span>' if part.absent else ''}</li>"
        for part in report.parts
    )
    return (
        f"<header><p class=app>Checkpoint Inspector · report</p><h1>{text_html(report.name)}</h1>"
        f"<p class=made>Made on <time>{report.made}</time>. Fingerprint "
        f"<code>{content_fingerprint(report.context.overview)[:16]}…</code></p>"
        f"<nav aria-label=Sections><ol>{contents}<li><a href=#provenance>Where this comes from"
        "</a></li></ol></nav><noscript><p class=note>Figures need JavaScript, which this reader "
        "does not run: the tables hold the same numbers.</p></noscript></header>"
    )


def _section(part: Part) -> str:
    inner: list[str] = [
        f'<section id="{part.slug}"><h2>{text_html(part.title)}</h2>',
        f"<p class=question>{text_html(part.question)}</p>",
    ]
    if part.absent:
        inner.append(f"<p class=note>{text_html(part.absent)}</p>")
    inner += [f"<p class=note>{text_html(note)}</p>" for note in part.notes]
    inner += [_block(block, part) for block in part.blocks]
    commands = "\n".join(part.commands)
    inner.append(
        "<details class=again><summary>The same view, and the same numbers</summary>"
        f"<p>In the app: <code>{text_html(part.link)}</code></p>"
        f"<pre>{text_html(commands)}</pre></details></section>"
    )
    return "\n".join(inner)


def _provenance(report: Report) -> str:
    opened = ""
    if report.context.opened.reference.startswith("path:"):
        opened = (
            "<p>The checkpoint was opened from a folder: open yours in the app first, then follow "
            "a section's address; in the commands, put your folder's path.</p>"
        )
    return (
        "<section id=provenance><h2>Where this comes from</h2>"
        f"{_facts(Facts(report.provenance))}{opened}"
        "<p>The same report again, with every figure as PNG and SVG, every table as CSV and a "
        f"notebook:</p><pre>{text_html(report.command)}</pre></section>"
    )


def _block(block: Block, part: Part) -> str:
    if isinstance(block, Drawn):
        return _figure(block, part)
    if isinstance(block, Tabled):
        return table_html(block) + _cut(block, part)
    return block_html(block)


def block_html(block: Block) -> str:
    """Write a block that is neither a figure nor a table."""
    return _PLAIN[type(block)](block)


def _figure(drawn: Drawn, part: Part) -> str:
    name = f"{part.slug}-{drawn.name}"
    figure = both(drawn.draw)
    layout = figure["light"]["layout"]
    size = f"height:{layout.get('height', 450)}px"
    if layout.get("width"):
        size += f";width:{layout['width']}px"
    return (
        f'<figure class=plot><div id="plot-{name}" style="{size}" role=img '
        f'aria-label="{text_html(drawn.alt)}" data-name="{name}"></div>'
        f'<script type="application/json" id="data-{name}">{_json(figure)}</script></figure>'
    )


def table_html(tabled: Tabled) -> str:
    """Write the first rows of a table."""
    frame = tabled.frame
    shown = frame.head(tabled.rows)
    heads = "".join(
        f"<th scope=col{' class=number' if _is_numeric(frame[name]) else ''}>{text_html(_label(str(name)))}</th>"
        for name in frame.columns
    )
    rows = "".join(f"<tr>{''.join(_cells(row))}</tr>" for row in shown.to_dict("records"))
    return (
        f"<h3>{text_html(tabled.title)}</h3><div class=scroll tabindex=0 role=region "
        f'aria-label="{text_html(tabled.title)}"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cut(tabled: Tabled, part: Part) -> str:
    rows = len(tabled.frame)
    if rows <= tabled.rows:
        return ""
    return (
        f"<p class=cut>{tabled.rows:,} of {rows:,} rows are shown; "
        f"<code>tables/{part.slug}-{tabled.name}.csv</code> in the report’s .zip has all "
        f"{rows:,}.</p>"
    )


def _is_numeric(column: Any) -> bool:
    """Whether a column's values stand at the right."""
    return is_numeric_dtype(column) and not is_bool_dtype(column)


def _cells(row: dict[Any, Any]) -> Iterator[str]:
    for name, value in row.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        yield f"<td{' class=number' if number else ''}>{text_html(_cell(str(name), value))}</td>"


def _cell(name: str, value: Any) -> str:
    if hasattr(value, "item"):
        value = value.item()
    if value is None or type(value).__name__ == "NAType":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _count(name, value)
    if isinstance(value, float):
        return f"{value:.5g}" if math.isfinite(value) else "–"
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    text = str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _count(name: str, value: int) -> str:
    if name.endswith("nbytes"):
        return bytes_text(value)
    return str(value) if name in IDS or name.endswith("_id") else f"{value:,}"


def _label(name: str) -> str:
    return {"nbytes": "size", "token_id": "id"}.get(name, name.replace("_", " "))


def _said(said: Said) -> str:
    return f"<p>{text_html(said.text)}</p>" if said.text else ""


def _listed(listed: Listed) -> str:
    return f"<ul>{''.join(f'<li>{text_html(item)}</li>' for item in listed.items)}</ul>"


def _facts(facts: Facts) -> str:
    rows = "".join(f"<dt>{text_html(name)}</dt><dd>{text_html(value)}</dd>" for name, value in facts.pairs.items())
    return f"<dl>{rows}</dl>"


def _code(code: Code) -> str:
    return f"<pre>{text_html(code.text)}</pre>"


_PLAIN: dict[type, Callable[[Any], str]] = {Said: _said, Listed: _listed, Facts: _facts, Code: _code}


def _json(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text
