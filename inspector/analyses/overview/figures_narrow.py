"""Where everything in the portrait is drawn on a phone: a band for each part of the model, one below the other."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.overview.figures_colors import Box
from inspector.analyses.overview.figures_layout import (
    ABSENT,
    HEADER,
    LINE,
    NARROWEST,
    SMALL,
    SPACE,
    Absent,
    Note,
    OverviewLayout,
    extents,
    placed,
    tie_text,
    tied_pairs,
    times,
)
from inspector.analyses.overview.figures_parts import Column, Portrait
from inspector.analyses.overview.words import HEADS
from inspector.plotting.lettering import flow, text_width

WIDTH = 320.0  # for which texts are fitted
HEIGHT, EACH = 480.0, 44.0  # of all bands together, second names aside: for each at least so much
SECOND = 38.0  # height of a second name
MARGIN = 24.0  # at the right, where something is tied
TURN = 6.0  # radius of a line's corner, and between two lines


def arrange_narrow(portrait: Portrait) -> OverviewLayout:
    """Draw bands one below the other, each with its name above it; absent heads follow."""
    width = WIDTH - (MARGIN if portrait.ties else 0.0)
    fixed = [SECOND * len(column.parts) if column.is_tied else NARROWEST for column in portrait.columns]
    seconds = sum(own for column, own in zip(portrait.columns, fixed, strict=True) if column.is_tied)
    room = max(HEIGHT, EACH * len(fixed)) + seconds
    heights, widths = extents(portrait.columns, fixed, room=room, across=width)
    boxes: list[Box] = []
    tops: list[float] = []
    top = 0.0
    for column, height, own in zip(portrait.columns, heights, widths, strict=True):
        tops.append(top)
        boxes += _band(column, top, height, width if column.is_tied else own)
        top += height + HEADER
    bottom = top - HEADER if tops else 0.0
    pairs = tied_pairs(portrait, boxes)
    notes = [
        Note(tie_text(pairs[0][0]), 0.0, above - HEADER / 2, is_tie=True)
        if column.is_tied and len(pairs) == 1
        else Note(column.label + times(column), 0.0, above - HEADER / 2)
        for column, above in zip(portrait.columns, tops, strict=True)
    ]
    absent: list[Absent] = []
    if portrait.absent:
        top = bottom + HEADER if tops else 0.0
        notes.append(Note(ABSENT, 0.0, top - HEADER / 2))
        absent += _absent(portrait, top)
        bottom = absent[-1].top + absent[-1].height
    loops = tuple(_bracket(source, second, width, number) for number, (source, second) in enumerate(pairs))
    return OverviewLayout(tuple(boxes), tuple(notes), tuple(absent), loops, WIDTH, bottom + 8)


def _band(column: Column, top: float, height: float, width: float) -> Iterator[Box]:
    """What is a column else, turned: its rows stand side by side; second names lie one below the other."""
    if column.is_tied:
        own = height / len(column.parts)
        yield from (Box(part, 0.0, top + number * own, width, own) for number, part in enumerate(column.parts))
        return
    for box in placed(column.parts, top, height, width):
        yield Box(box.part, box.top, box.left, box.height, box.width)


def _absent(portrait: Portrait, top: float) -> Iterator[Absent]:
    names = [HEADS[head][0] for head in portrait.absent]
    widths = [text_width(name, SMALL) + 2 * SPACE for name in names]
    height = LINE + SPACE
    for name, width, place in zip(names, widths, flow(widths, names, width=WIDTH, gap=SPACE, joint=SPACE), strict=True):
        yield Absent((name,), place.left, top + place.line * (height + SPACE), width, height)


def _bracket(source: Box, second: Box, width: float, number: int) -> str:
    """A line at the right of all bands, from a matrix to its second name."""
    begin, end = source.top + source.height / 2, second.top + second.height / 2
    outer = width + MARGIN / 2 + number % 2 * TURN
    inner = outer - TURN
    return (
        f"M {source.left + source.width:.1f},{begin:.1f} L {inner:.1f},{begin:.1f} "
        f"Q {outer:.1f},{begin:.1f} {outer:.1f},{begin + TURN:.1f} L {outer:.1f},{end - TURN:.1f} "
        f"Q {outer:.1f},{end:.1f} {inner:.1f},{end:.1f} L {second.left + second.width:.1f},{end:.1f}"
    )
