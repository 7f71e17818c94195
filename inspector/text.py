"""Text for people: safe in each place that shows it, short and in human units."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
FORMULA = ("=", "+", "-", "@", "\t", "\n")
HIDDEN = {"Cc", "Cs", "Zl", "Zp"}  # controls, lone surrogates, line and paragraph separators
# What Markdown makes an address of although every sign is escaped: "https://" and "www." before a name, "@" in it.
ADDRESS = re.compile(r"(?i)(https?://|www(?=\.)|@)(?=\S)")
JOINER = "\u2060"  # not seen, and no sign of an address
MARKUP = re.compile(r"([!-/:-@\[-`{-~])")  # ASCII punctuation: all that Markdown gives a meaning


def visible(text: str) -> str:
    r"""Show what would not be seen, or would turn the text around, by its code point.

    Args:
        text: A token or a parameter's name, from an untrusted file.

    Returns:
        The text with controls, lone surrogates and marks of direction as \\x00 or \\u202e.
    """
    if text.isprintable():  # nearly all of them, and much faster
        return text
    return "".join(_code_point(c) if c in BIDI or unicodedata.category(c) in HIDDEN else c for c in text)


def plain(text: str) -> str:
    """Make text safe for Plotly, which reads "<b>" and "&lt;" as markup.

    Returns:
        The text, made visible, with every character standing for itself.
    """
    return html.escape(visible(text), quote=False)


def text_html(text: str) -> str:
    """Make text safe for HTML, attributes included, line by line."""
    return "\n".join(html.escape(visible(line)) for line in text.split("\n"))


def literal(text: object) -> str:
    """Make text safe for Markdown: no link, image, color or icon."""
    return MARKUP.sub(r"\\\1", ADDRESS.sub(rf"\1{JOINER}", visible(" ".join(str(text).split()))))


def in_code(text: str) -> str:
    """Make text safe for Markdown, as code."""
    return f"`{' '.join(visible(text).replace('`', chr(39)).split())}`"


def escaped(text: str) -> str:
    r"""Make text safe for a terminal and a log: one line, whatever has no glyph as \x1b or \u202e."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def json_text(value: Any) -> str:
    r"""Write JSON on one line that no terminal acts on: whatever has no glyph is \u009b or \u202e."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def quoted(text: str, limit: int = 80) -> str:
    """Quote text for an error: ASCII, on one line, cut to `limit` characters."""
    return ascii(text[:limit] + ("…" if len(text) > limit else ""))


def shorten(text: str, length: int) -> str:
    """Cut the end of a text that is longer than `length` characters."""
    return text if len(text) <= length else text[: max(length - 1, 1)] + "…"


def shorten_middle(text: str, length: int) -> str:
    """Cut the middle of a text that is longer than `length`: names differ at both ends."""
    if len(text) <= length:
        return text
    tail = (length - 1) * 3 // 5
    return text[: length - 1 - tail] + "…" + text[len(text) - tail :]


def shorten_name(name: str, length: int) -> str:
    """Cut a dotted name to `length` characters and keep what tells it from its neighbors.

    The longest modules lose their ends, as much as is needed, those with a number last; the last
    part stays: "encoder.layer.0.intermed….weight". Where that is not enough, the middle goes.
    """
    parts = name.split(".")
    excess = len(name) - length
    numbered = [any(c.isdecimal() for c in part) for part in parts]
    for index in sorted(range(len(parts) - 1), key=lambda at: (numbered[at], -len(parts[at]))):
        part = parts[index]
        if excess <= 0 or len(part) <= 5:
            continue
        cut = min(excess + 1, len(part) - 3)  # one more, for the "…"
        parts[index] = part[: len(part) - cut] + "…"
        excess -= cut - 1
    return shorten_middle(".".join(parts), length)


def count_text(number: float) -> str:
    """Write a count with one decimal: 512, 30.5K, 23.4M, 1.3B."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if number >= size * 0.9995:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"


def as_csv(frame: pd.DataFrame) -> str:
    """Write a frame as CSV; texts that a spreadsheet would compute get an apostrophe before them.

    OWASP, "CSV Injection": a cell that begins with =, +, -, @, a tab or a line break may be a formula.
    """
    texts = frame.select_dtypes(exclude=["number", "bool"]).columns
    plain = frame.assign(**{name: frame[name].map(_no_formula) for name in texts})
    return plain.rename(columns=_no_formula).to_csv(index=False)


def _no_formula(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    # Readers take a carriage return, which is not quoted here, for the end of a row.
    text = cell.replace("\r", "\\x0d")
    return f"'{text}" if text.startswith(FORMULA) else text


def bytes_text(nbytes: float) -> str:
    """Write bytes in decimal units: 512 B, 122.1 KB, 93.8 MB."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if nbytes >= size * 0.9995:
            return f"{nbytes / size:.1f} {unit}"
    return f"{nbytes:.0f} B"


def percent_text(share: float) -> str:
    """Write a share of 0..1 as a percentage that is never rounded to nothing: 41.3 %, <0.01 %."""
    if 0 < share < 0.0001:
        return "<0.01 %"
    return f"{100 * share:.{1 if share >= 0.01 else 2}f} %"


def shape_text(shape: Iterable[int]) -> str:
    """Write a shape as 30,522 × 768; a scalar as "scalar"."""
    return " × ".join(f"{size:,}" for size in shape) or "scalar"


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Write a number with its noun: 1 tensor, 2,000 tensors."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def some(names: Sequence[str], most: int) -> str:
    """List the first of some names, and how many more there are: "a, b and 1,000 more"."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def in_level(level: str) -> str:
    """Say where in config.json a setting stands, behind its name or value; nothing of the top."""
    return f" in {level}" if level else ""


def _code_point(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
