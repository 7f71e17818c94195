"""Where everything in the portrait is drawn: a column for each part of the model, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from inspector.analyses.overview.figures_colors import Box
from inspector.analyses.overview.figures_parts import Column, DrawnTensors, Portrait
from inspector.analyses.overview.words import HEADS
from inspector.plotting.lettering import text_width
from inspector.text import count_text

WIDTH = 690.0  # for which texts are fitted; a report draws it smaller where there is less, a page as wide as it is
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


@dataclass(frozen=True, slots=True)
class Note:
    """A text outside the rectangles."""

    text: str
    x: float
    y: float  # of its middle
    is_tie: bool = False  # it says what a curve says
    is_centered: bool = False  # and begins elsewhere than at x


@dataclass(frozen=True, slots=True)
class Absent:
    """The outline of a head that the files do not hold: no size tells anything here."""

    lines: tuple[str, ...]
    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class OverviewLayout:
    """What is drawn where, in pixels from the top left."""

    boxes: tuple[Box, ...]
    notes: tuple[Note, ...]
    absent: tuple[Absent, ...]
    loops: tuple[str, ...]  # SVG paths from matrices to their second names
    right: float
    bottom: float


def arrange(portrait: Portrait) -> OverviewLayout:
    """Draw columns side by side; absent heads stand above second names, or in a column apart."""
    apart = bool(portrait.absent) and not any(column.is_tied for column in portrait.columns)
    widths, heights = _extents(portrait.columns, WIDTH - (TIED + GAP if apart else 0))
    lines = [wrap(HEADS[head][0], TIED) for head in portrait.absent]
    above = sum(LINE * len(each) + 2 * SPACE for each in lines)  # what they take of the last column
    boxes: list[Box] = []
    lefts: list[float] = []
    left = 0.0
    for column, width, height in zip(portrait.columns, widths, heights, strict=True):
        lefts.append(left)
        if column.is_tied:
            boxes += _stacked(column.parts, left, width, min(height, HEIGHT - above))
        else:
            boxes += placed(column.parts, left, width, height)
        left += width + GAP
    right = left + TIED if apart else left - GAP
    bottom = HEIGHT + LOOP if portrait.ties else max(above, *heights, 0.0) + 8
    notes = [*_headers(portrait, [*lefts, right - TIED] if apart else lefts)]
    absent = []
    top = 0.0
    for each in lines:
        height = LINE * len(each) + SPACE
        absent.append(Absent(tuple(each), right - TIED, top, TIED, height))
        top += height + SPACE
    pairs = tied_pairs(portrait, boxes)
    if pairs:
        notes.append(_tie_note(*pairs[0], bottom))
    loops = tuple(_loop(source, second, bottom) for source, second in pairs)
    return OverviewLayout(tuple(boxes), tuple(notes), tuple(absent), loops, right, bottom)


def tied_pairs(portrait: Portrait, boxes: Sequence[Box]) -> list[tuple[Box, Box]]:
    """Each matrix that has second names, and the last of these."""
    named = {box.part.pattern: box for box in boxes}
    last = {tie.source: tie.name for tie in portrait.ties if tie.source in named}
    return [(named[source], named[second]) for source, second in last.items()]


def tie_text(source: Box) -> str:
    """Say what a curve says."""
    return f"tied: one tensor, {count_text(source.part.parameters)} parameters"


def _extents(columns: Sequence[Column], room: float) -> tuple[list[float], list[float]]:
    """Width and height of each column."""
    fixed = [TIED if column.is_tied else NARROWEST if column.times == 1 else FOLDED for column in columns]
    widths, heights = extents(columns, fixed, room=room - GAP * max(0, len(columns) - 1), across=HEIGHT)
    tied = [min(HEIGHT, TALLEST * len(column.parts)) for column in columns]
    return widths, [
        own if column.is_tied else height for column, own, height in zip(columns, tied, heights, strict=True)
    ]


def extents(
    columns: Sequence[Column], fixed: Sequence[float], *, room: float, across: float
) -> tuple[list[float], list[float]]:
    """Size of each column: equal areas an equal number of parameters, as large as they fit beside each other.

    Args:
        fixed: Pixels that each takes at least, and second names take.
        room: Pixels of all together.
        across: Pixels of the longest in the other direction.

    Returns:
        Pixels of each in the direction in which they follow each other, and in the other one.
    """
    areas = [0.0 if column.is_tied else float(column.parameters) for column in columns]

    def drawn(scale: float) -> list[float]:
        return [max(least, area * scale / across) for least, area in zip(fixed, areas, strict=True)]

    low, high = 0.0, room * across / max(1.0, *areas, 1.0)
    for _ in range(60):  # halves: more than a float can tell
        middle = (low + high) / 2
        low, high = (middle, high) if sum(drawn(middle)) <= room else (low, middle)
    along = drawn(low)
    return along, [area * low / own for area, own in zip(areas, along, strict=True)]


def _stacked(parts: Sequence[DrawnTensors], left: float, width: float, height: float) -> Iterator[Box]:
    """Second names, one below the other at the foot of the columns, where their curves end."""
    own = height / len(parts)
    for number, part in enumerate(parts):
        yield Box(part, left, HEIGHT - height + number * own, width, own)


def placed(parts: Sequence[DrawnTensors], left: float, width: float, height: float) -> Iterator[Box]:
    """Fill a column with rows of parts, each row as many as look most like squares; a kind begins a row."""
    total = sum(part.parameters for part in parts)
    if not total:
        return
    scale = width * height / total
    top = 0.0
    row: list[DrawnTensors] = []
    for part in parts:
        if row and (row[0].kind != part.kind or _oddest([*row, part], width, scale) > _oddest(row, width, scale)):
            yield from _row(row, left, top, width, scale)
            top += _row_height(row, width, scale)
            row = []
        row.append(part)
    yield from _row(row, left, top, width, scale)


def _row_height(row: Sequence[DrawnTensors], width: float, scale: float) -> float:
    return sum(part.parameters for part in row) * scale / width


def _row(row: Sequence[DrawnTensors], left: float, top: float, width: float, scale: float) -> Iterator[Box]:
    height = _row_height(row, width, scale)
    for part in row:
        own = part.parameters * scale / height
        yield Box(part, left, top, own, max(height, THINNEST))
        left += own


def _oddest(row: Sequence[DrawnTensors], width: float, scale: float) -> float:
    """The largest ratio of sides in a row."""
    height = _row_height(row, width, scale)
    widths = [part.parameters * scale / height for part in row]
    return max(max(own / height, height / own) for own in widths)


def _headers(portrait: Portrait, lefts: Sequence[float]) -> Iterator[Note]:
    """What each column is, where there is room for it."""
    columns = portrait.columns
    rights = [*(left - 4 for left in lefts[1:]), WIDTH]
    texts: dict[int, str] = {}
    for stack, group in groupby(range(len(columns)), key=lambda number: columns[number].stack):
        members = [*group]
        for number in members:
            label, many = columns[number].label, times(columns[number])
            short = [label.rpartition(" ")[2] + many] if stack == "layers" else []  # the numbers alone say it
            texts[number] = _first_fitting([label + many, *short], rights[number] - lefts[number])
        if stack not in {"", "layers"} and not all(texts[number] for number in members):  # one for all of them
            texts |= dict.fromkeys(members, "")
            texts[members[0]] = _first_fitting([stack], rights[members[-1]] - lefts[members[0]])
    if portrait.absent:
        texts[len(lefts) - 1] = ABSENT
    yield from (Note(text, lefts[number], -HEADER / 2) for number, text in texts.items() if text)


def times(column: Column) -> str:
    """How many layers a column stands for."""
    if not column.alike:
        return ", the first"
    return "" if column.times == 1 else f" × {column.times}"


def _first_fitting(texts: Sequence[str], room: float) -> str:
    return next((text for text in texts if text_width(text, TEXT) <= room), "")


def wrap(text: str, room: float) -> list[str]:
    """A name in the lines that it needs."""
    lines: list[str] = []
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines else word
        lines = [*lines[:-1], joined] if text_width(joined, SMALL) <= room - 6 else [*lines, word]
    return lines


def _loop(source: Box, second: Box, bottom: float) -> str:
    """A curve below the columns, from a matrix to its second name."""
    start, end = source.left + source.width / 2, second.left + second.width / 2
    begin, stop = source.top + source.height, second.top + second.height
    return f"M {start:.1f},{begin:.1f} C {start:.1f},{bottom:.1f} {end:.1f},{bottom:.1f} {end:.1f},{stop:.1f}"


def _tie_note(source: Box, second: Box, bottom: float) -> Note:
    start = min(source.top + source.height, second.top + second.height)
    middle = (source.left + source.width / 2 + second.left + second.width / 2) / 2
    lowest = start + 0.75 * (bottom - start)
    return Note(tie_text(source), middle, min(lowest, bottom - 8), is_tie=True, is_centered=True)
