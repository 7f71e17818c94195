"""Pictures of text, drawn for a width: lines of spans, each a text with its style."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from textwrap import wrap

from inspector.text import escaped, shorten, shorten_name
from inspector.view.blocks import Bars, Branch, Grid, Joins, TextPicture, Tree

Span = tuple[str, str]  # text, and its style: "", "dim", "bold", "bar", or "shade 0.42"
Line = list[Span]

EIGHTHS = " ▏▎▍▌▋▊▉█"
MARKS = "·░▒▓█"  # of a shade, where there is no color
WIDEST_BAR, SHORTEST_BAR, NARROWEST_BAR = 40, 12, 6  # of the longest value; the second where labels are long
WIDEST_CELL, NARROWEST_CELL = 12, 5
SHORTEST_NAME = 36  # columns of a joined name before what is shared goes below it
STRIPS = 2  # of columns, one below the other, before some are left out
MOST_LAYERS = 16  # rows of a grid


def draw(picture: TextPicture, width: int) -> list[Line]:
    """Draw a picture.

    Args:
        picture: Names in it may be a stranger's: they are escaped here.
        width: Columns of the terminal.
    """
    if isinstance(picture, Bars):
        return _bars(picture, width)
    if isinstance(picture, Grid):
        return _grid(picture, width)
    return _tree(picture, width) if isinstance(picture, Tree) else _joins(picture, width)


def mark(style: str) -> str:
    """The mark that stands for a shade; "" for every other style."""
    kind, _, share = style.partition(" ")
    if kind != "shade":
        return ""
    return MARKS[min(int(float(share) * len(MARKS)), len(MARKS) - 1)] if share else " "


def text_width(text: str) -> int:
    """Columns that a text takes on a terminal: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def fit(text: str, width: int) -> str:
    """A text in exactly so many columns; of a dotted name its end and its numbers stay."""
    cut, length = text, width
    while text_width(cut) > width and length > 0:
        cut = _shorter_name(text, length) if "." in text and " " not in text else shorten(text, length)
        length -= 1
    return cut + " " * (width - text_width(cut))


def _shorter_name(name: str, length: int) -> str:
    parts = name.split(".")
    cut = shorten_name(name, length)
    if all(f".{part}." in f".{cut}." for part in parts if part.isdecimal()):
        return cut
    tails = (".".join(["…", *parts[start:]]) for start in range(1, len(parts)))
    return next((tail for tail in tails if len(tail) <= length), cut)


def _widest(texts: Sequence[str]) -> int:
    return max(map(text_width, texts), default=0)


def _bars(bars: Bars, width: int) -> list[Line]:
    labels, texts = [escaped(each) for each in bars.labels], [escaped(each) for each in bars.texts]
    label = min(_widest(labels), max(width - _widest(texts) - SHORTEST_BAR - 2, 8))
    room = max(min(width - label - _widest(texts) - 2, WIDEST_BAR), NARROWEST_BAR)
    most = max(bars.values, default=0.0) or 1.0
    lines = []
    for name, value, text in zip(labels, bars.values, texts, strict=True):
        drawn = _bar(value / most, room)
        lines.append([(fit(name, label), ""), (" ", ""), (drawn, "bar"), (f" {text}" if drawn else text, "")])
    return lines


def _bar(share: float, room: int) -> str:
    eighths = round(max(share, 0.0) * room * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (EIGHTHS[rest] if rest else "")


def _grid(grid: Grid, width: int) -> list[Line]:
    rows = _spread(len(grid.rows), MOST_LAYERS)
    cells = [[escaped(cell) for cell in grid.cells[row]] for row in rows]
    names, labels = [escaped(name) for name in grid.columns], [escaped(grid.rows[row]) for row in rows]
    label = min(_widest(labels), max(width // 4, 5))
    cell = max(min(_widest([*names, *(text for line in cells for text in line)]), WIDEST_CELL), NARROWEST_CELL)
    across = max((width - label - 1) // (cell + 2), 1)
    if across < len(names):  # narrower cells before another strip
        cell = max(min(cell, (width - label - 1) // min(len(names), 2 * across) - 2), NARROWEST_CELL)
        across = max((width - label - 1) // (cell + 2), 1)
    first = max(len(names) - STRIPS * across, 0)
    lines: list[Line] = []
    for start in range(first, len(names), across):
        strip = range(start, min(start + across, len(names)))
        if lines:
            lines.append([])
        lines.append([(" " * (label + 1), ""), *((f" {fit(names[at], cell + 1)}", "dim") for at in strip)])
        for row, name, texts in zip(rows, labels, cells, strict=True):
            line: Line = [(f"{fit(name, label)} ", "dim")]
            for at in strip:
                share = grid.shades[row][at]
                line += [(fit(texts[at], cell), "shade" if share is None else f"shade {share:.3f}"), (" ", "")]
            lines.append(line)
    return lines + [[(text, "dim")] for text in wrap(_left_out(grid, len(rows), first), width)]


def _left_out(grid: Grid, rows: int, first: int) -> str:
    """What the grid's shades show, and how much of it is drawn."""
    said = [f"shade: {escaped(grid.measure)}"]
    if rows < len(grid.rows):
        said.append(f"{rows} of {len(grid.rows)} layers")
    if first:
        said.append(f"the last {len(grid.columns) - first} of {len(grid.columns)} positions")
    return "; ".join(said)


def _spread(count: int, most: int) -> list[int]:
    """Places that are evenly spread, with the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(step * (count - 1) / (most - 1)) for step in range(most)})


def _tree(tree: Tree, width: int) -> list[Line]:
    rows = list(_branches(tree.branches, "", top=True))
    details = [escaped(branch.detail) for _, branch in rows]
    label = min(
        max((len(guide) + text_width(escaped(branch.label)) for guide, branch in rows), default=0),
        max(width - _widest(details) - 2, 16),
    )
    lines = []
    for (guide, branch), detail in zip(rows, details, strict=True):
        name = fit(escaped(branch.label), max(label - len(guide), 4))
        lines.append([(guide, "dim"), (name, ""), (f"  {detail}".rstrip(), "dim")])
    return lines


def _branches(branches: Sequence[Branch], guide: str, *, top: bool = False) -> Iterator[tuple[str, Branch]]:
    for place, branch in enumerate(branches, start=1):
        last = place == len(branches)
        yield guide + ("" if top else "└─ " if last else "├─ "), branch
        yield from _branches(branch.below, guide + ("" if top else "   " if last else "│  "))


def _joins(joins: Joins, width: int) -> list[Line]:
    lines: list[Line] = []
    for names, what in joins.groups:
        said, shown = escaped(what), [escaped(name) for name in names]
        beside = width >= text_width(said) + 6 + min(_widest(shown), SHORTEST_NAME)
        room = max(width - (text_width(said) + 6 if beside else 4), 12)
        length = min(_widest(shown), room)
        if lines:
            lines.append([])
        for place, name in enumerate(shown):
            last = place == len(shown) - 1
            corner = "──" if len(shown) == 1 else "┐" if place == 0 else "┴" if last else "┤"
            fitted = fit(name, length)
            bare = fitted.rstrip()
            line: Line = [(bare, ""), (" " + "─" * (length - text_width(bare) + 1) + corner, "bar")]
            lines.append([*line, ("─ ", "bar"), (said, "bold")] if last and beside else line)
        if not beside:
            lines.append([("  ", ""), (said, "bold")])
    return lines
