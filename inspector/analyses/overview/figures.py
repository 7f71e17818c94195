"""The portrait of a checkpoint: every matrix to scale, ties as loops, identical layers folded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import plotly.graph_objects as go

from inspector.analyses.overview.figures_colors import COLORINGS, Box, paint
from inspector.analyses.overview.figures_parts import Column, Part, Portrait
from inspector.analyses.overview.words import HEADS
from inspector.plotting import theme as look
from inspector.plotting.lettering import text_width
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import count_text, plain, shape_text

WIDTH = 690.0  # for which texts are fitted; a report draws it smaller on a phone, a page as wide as it is
HEIGHT = 330.0  # of the tallest column
FOLDED = 58.0  # the same of one that stands for several layers, and says so
GAP = 14.0  # between columns
TIED = 84.0  # width of the column of second names, which hold no parameters of their own
TALLEST = 130.0  # second name
NARROWEST = 26.0  # column; one with fewer parameters is shorter instead
HEADER = 22.0  # above the columns
LOOP = 62.0  # below them, where something is tied
TEXT = 12
SMALL = 11
THINNEST = 2.0  # that a strip is drawn: one that would be thinner takes this much
LINE, SPACE = 14.0, 6.0  # height of a line of text; between absent heads
ABSENT = "absent heads"


def portrait_figure(
    portrait: Portrait,
    *,
    title: str,
    subtitle: str = "",
    color: str = COLORINGS[0],
    rms: Sequence[float] = (),
    theme: Theme = LIGHT,
) -> go.Figure:
    """Draw a checkpoint's matrices as rectangles with areas by their parameters.

    Columns are embeddings, layers, and what follows; a column of identical layers shows one of them and says how many
    there are. A second name of a matrix is hatched and joined to the matrix by a curve; a head that the files lack has
    a dashed outline.

    Args:
        color: One of COLORINGS: what the colors of the rectangles tell.
        rms: Of each stored tensor, as `measure` takes it; empty: no numbers were read.

    Returns:
        A figure with one trace of clickable bars for each color; their customdata is the number of the part in
        `Portrait.parts`.
    """
    apart = bool(portrait.absent) and not any(column.is_tied for column in portrait.columns)
    widths, heights = _extents(portrait.columns, WIDTH - (TIED + GAP if apart else 0))
    absent = [_wrap(HEADS[head][0], TIED) for head in portrait.absent]
    above = sum(LINE * len(lines) + 2 * SPACE for lines in absent)  # what they take of the last column
    boxes, lefts = [], []
    left = 0.0
    for column, width, height in zip(portrait.columns, widths, heights, strict=True):
        lefts.append(left)
        if column.is_tied:
            boxes += _stacked(column.parts, left, width, min(height, HEIGHT - above))
        else:
            boxes += _placed(column.parts, left, width, height)
        left += width + GAP
    right = left + TIED if apart else left - GAP
    bottom = HEIGHT + LOOP if portrait.ties else max(above, *heights, 0.0) + 8
    scaled = color == "rms" and any(map(math.isfinite, rms))
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=round(bottom + HEADER + look.title_height(title, subtitle) + (70 if scaled else 44)),
        meta={"least": WIDTH},
        xaxis=look.hidden_axis(-2, max(right, 1) + 2),
        yaxis=look.hidden_axis(bottom, -HEADER),
        barmode="overlay",
        bargap=0,
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
        legend=look.legend_below(theme) | {"y": -0.01, "itemclick": False, "itemdoubleclick": False},
    )
    traces, inks = paint(boxes, portrait.parts, color=color, rms=rms, theme=theme)
    figure.add_traces(traces)
    texts = [*_headers(portrait, [*lefts, right - TIED] if apart else lefts, theme), *_labels(boxes, inks, theme)]
    top = 0.0
    for lines in absent:
        height = LINE * len(lines) + SPACE
        figure.add_shape(_dashed(right - TIED, top, height, theme))
        texts.append(_text("<br>".join(lines), (right - TIED / 2, top + height / 2), theme.muted, size=SMALL))
        top += height + SPACE
    named = {box.part.pattern: box for box in boxes}
    joined = {tie.source: tie.name for tie in portrait.ties if tie.source in named}  # the last of each source
    for source, second in joined.items():
        figure.add_shape(_loop(named[source], named[second], bottom, theme))
    if joined:
        source, second = next(iter(joined.items()))
        texts.append(_tied_label(named[source], named[second], bottom, theme))
    figure.layout.annotations = texts
    return figure


def _extents(columns: Sequence[Column], room: float) -> tuple[list[float], list[float]]:
    """Width and height of each column: equal areas an equal number of parameters, as large as they fit into a width."""
    areas = [0.0 if column.is_tied else float(column.parameters) for column in columns]
    fixed = [TIED if column.is_tied else NARROWEST if column.times == 1 else FOLDED for column in columns]
    room -= GAP * max(0, len(columns) - 1)

    def drawn(scale: float) -> list[float]:
        return [max(least, area * scale / HEIGHT) for least, area in zip(fixed, areas, strict=True)]

    low, high = 0.0, room * HEIGHT / max(1.0, *areas, 1.0)
    for _ in range(60):  # halves: more than a float can tell
        middle = (low + high) / 2
        low, high = (middle, high) if sum(drawn(middle)) <= room else (low, middle)
    widths = drawn(low)
    heights = [
        min(HEIGHT, TALLEST * len(column.parts)) if column.is_tied else area * low / width
        for column, area, width in zip(columns, areas, widths, strict=True)
    ]
    return widths, heights


def _stacked(parts: Sequence[Part], left: float, width: float, height: float) -> Iterator[Box]:
    """Second names, one below the other at the foot of the columns, where their curves end."""
    own = height / len(parts)
    for number, part in enumerate(parts):
        yield Box(part, left, HEIGHT - height + number * own, width, own)


def _placed(parts: Sequence[Part], left: float, width: float, height: float) -> Iterator[Box]:
    """Fill a column with rows of parts, each row as many as look most like squares; a kind begins a row."""
    total = sum(part.parameters for part in parts)
    if not total:
        return
    scale = width * height / total
    top = 0.0
    row: list[Part] = []
    for part in parts:
        if row and (row[0].kind != part.kind or _oddest([*row, part], width, scale) > _oddest(row, width, scale)):
            yield from _row(row, left, top, width, scale)
            top += _row_height(row, width, scale)
            row = []
        row.append(part)
    yield from _row(row, left, top, width, scale)


def _row_height(row: Sequence[Part], width: float, scale: float) -> float:
    return sum(part.parameters for part in row) * scale / width


def _row(row: Sequence[Part], left: float, top: float, width: float, scale: float) -> Iterator[Box]:
    height = _row_height(row, width, scale)
    for part in row:
        own = part.parameters * scale / height
        yield Box(part, left, top, own, max(height, THINNEST))
        left += own


def _oddest(row: Sequence[Part], width: float, scale: float) -> float:
    """The largest ratio of sides in a row."""
    height = _row_height(row, width, scale)
    widths = [part.parameters * scale / height for part in row]
    return max(max(own / height, height / own) for own in widths)


def _headers(portrait: Portrait, lefts: Sequence[float], theme: Theme) -> list[dict[str, Any]]:
    """What each column is, where there is room for it; absent heads stand above second names, or in a column apart."""
    columns = portrait.columns
    rights = [*(left - 4 for left in lefts[1:]), WIDTH]
    texts: dict[int, str] = {}
    for stack, group in groupby(range(len(columns)), key=lambda number: columns[number].stack):
        members = [*group]
        for number in members:
            many = "" if columns[number].times == 1 else f" × {columns[number].times}"
            many = many if columns[number].alike else ", the first"
            label = columns[number].label
            short = [label.rpartition(" ")[2] + many] if stack == "layers" else []  # the numbers alone say it
            texts[number] = _first_fitting([label + many, *short], rights[number] - lefts[number])
        if stack not in {"", "layers"} and not all(texts[number] for number in members):  # one for all of them
            texts |= dict.fromkeys(members, "")
            texts[members[0]] = _first_fitting([stack], rights[members[-1]] - lefts[members[0]])
    if portrait.absent:
        texts[len(lefts) - 1] = ABSENT
    return [
        _text(plain(text), (lefts[number], -HEADER / 2), theme.ink, size=TEXT, anchor="left")
        for number, text in texts.items()
        if text
    ]


def _wrap(text: str, room: float) -> list[str]:
    """A name in the lines that it needs."""
    lines: list[str] = []
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines else word
        lines = [*lines[:-1], joined] if text_width(joined, SMALL) <= room - 6 else [*lines, word]
    return lines


def _dashed(left: float, top: float, height: float, theme: Theme) -> dict[str, Any]:
    """The outline of what the files do not hold: no size tells anything here."""
    line = {"color": theme.muted, "width": 1, "dash": "4px,3px"}
    return {"type": "rect", "x0": left, "x1": left + TIED, "y0": top, "y1": top + height, "line": line}


def _first_fitting(texts: Sequence[str], room: float) -> str:
    return next((text for text in texts if text_width(text, TEXT) <= room), "")


def _labels(boxes: Sequence[Box], inks: dict[Part, str], theme: Theme) -> list[dict[str, Any]]:
    """Names and shapes inside the rectangles that have room for them."""
    found = []
    for box in boxes:
        part = box.part
        if part.kind == "vectors":
            continue
        name = f"{part.label} × {part.count}" if part.count > 1 else part.label
        size = "same tensor" if part.kind == "tied" else shape_text(part.shape)
        names = [name, name[0].upper()] if part.kind == "attention" else [name]
        fitting = [each for each in names if text_width(each, SMALL) <= box.width - 4]
        lines = fitting[:1] if box.height >= 15 else []
        if lines and text_width(size, SMALL) <= box.width - 6 and box.height >= 32:
            lines.append(size)
        if lines:
            middle = box.left + box.width / 2, box.top + box.height / 2
            text = _text("<br>".join(plain(line) for line in lines), middle, inks[part], size=SMALL)
            found.append(text | ({"bgcolor": theme.page} if part.kind == "tied" else {}))
    return found


def _text(text: str, place: tuple[float, float], color: str, *, size: int, anchor: str = "center") -> dict[str, Any]:
    return {
        "text": text,
        "x": place[0],
        "y": place[1],
        "xanchor": anchor,
        "yanchor": "middle",
        "showarrow": False,
        "font": {"color": color, "size": size},
        "borderpad": 1,
    }


def _loop(source: Box, second: Box, bottom: float, theme: Theme) -> dict[str, Any]:
    """A curve below the columns, from a matrix to its second name."""
    start, end = source.left + source.width / 2, second.left + second.width / 2
    begin, stop = source.top + source.height, second.top + second.height
    return {
        "type": "path",
        "path": f"M {start:.1f},{begin:.1f} C {start:.1f},{bottom:.1f} {end:.1f},{bottom:.1f} {end:.1f},{stop:.1f}",
        "line": {"color": theme.groups[0], "width": 1.5},
        "layer": "below",
    }


def _tied_label(source: Box, second: Box, bottom: float, theme: Theme) -> dict[str, Any]:
    start = min(source.top + source.height, second.top + second.height)
    middle = (source.left + source.width / 2 + second.left + second.width / 2) / 2
    text = f"tied: one tensor, {count_text(source.part.parameters)} parameters"
    lowest = start + 0.75 * (bottom - start)
    return _text(text, (middle, min(lowest, bottom - 8)), theme.groups[0], size=TEXT) | {
        "bgcolor": theme.page,
        "borderpad": 3,
    }
