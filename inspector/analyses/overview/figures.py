"""The portrait of a checkpoint: every matrix to scale, ties as loops, identical layers folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import plotly.graph_objects as go

from inspector.analyses.overview.figures_parts import Column, Kind, Part, Portrait
from inspector.plotting import theme as look
from inspector.plotting.lettering import text_width
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import count_text, plain, plural, shape_text, shorten

WIDTH = 690.0  # for which texts are fitted; the figure itself takes the width that it is given
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
SOFT = 0.72  # share of a color in the fill of large areas
THINNEST = 2.0  # that a strip is drawn: one that would be thinner takes this much
COLORINGS = ("kind", "dtype", "file")  # what the colors may tell
ORDER = (1, 2, 4, 3, 5, 6, 7)  # of the theme's colors: the first one is that of ties
PATTERNS = ("", "\\", ".", "-", "x", "|", "+")  # one a color, so that color is never the only sign
KINDS: dict[Kind, str] = {
    "embedding": "embeddings",
    "attention": "attention",
    "feed-forward": "feed-forward",
    "other": "other layers",
    "head": "heads",
    "vectors": "norms, biases",
    "tied": "second name",
}


@dataclass(frozen=True, slots=True)
class _Box:
    part: Part
    left: float
    top: float
    width: float
    height: float


def portrait_figure(
    portrait: Portrait, *, title: str, subtitle: str = "", color: str = COLORINGS[0], theme: Theme = LIGHT
) -> go.Figure:
    """Draw a checkpoint's matrices as rectangles with areas by their parameters.

    Columns are embeddings, layers, and what follows; a column of identical layers shows one of them and says how many
    there are. A second name of a matrix is hatched and joined to the matrix by a curve.

    Args:
        color: One of COLORINGS: what the colors of the rectangles tell.

    Returns:
        A figure with one trace of clickable bars for each color; their customdata is the number of the part in
        `Portrait.parts`.
    """
    widths, heights = _extents(portrait.columns)
    boxes, lefts = [], []
    left = 0.0
    for column, width, height in zip(portrait.columns, widths, heights, strict=True):
        lefts.append(left)
        boxes += (_stacked if column.is_tied else _placed)(column.parts, left, width, height)
        left += width + GAP
    right = left - GAP
    bottom = HEIGHT + LOOP if portrait.ties else max(heights, default=0.0) + 8
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=round(bottom + HEADER + look.title_height(title, subtitle) + 44),
        xaxis=look.hidden_axis(-2, max(right, 1) + 2),
        yaxis=look.hidden_axis(bottom, -HEADER),
        barmode="overlay",
        bargap=0,
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
        legend=look.legend_below(theme) | {"y": -0.01, "itemclick": False, "itemdoubleclick": False},
    )
    grounds: dict[Part, str] = {}
    for number, (name, found) in enumerate(_grouped(boxes, color).items()):
        ground = _ground(found[0].part, number, color, theme)
        grounds |= {box.part: ground for box in found}
        pattern = PATTERNS[number % len(PATTERNS)] if color != "kind" else ""
        figure.add_trace(_bars(found, portrait.parts, name=name, color=ground, pattern=pattern, theme=theme))
    texts = [*_headers(portrait.columns, lefts, theme), *_labels(boxes, grounds, theme)]
    named = {box.part.pattern: box for box in boxes}
    joined = {tie.source: tie.name for tie in portrait.ties if tie.source in named}  # the last of each source
    for source, second in joined.items():
        figure.add_shape(_loop(named[source], named[second], bottom, theme))
    if joined:
        source, second = next(iter(joined.items()))
        texts.append(_tied_label(named[source], named[second], bottom, theme))
    figure.layout.annotations = texts
    return figure


def _extents(columns: Sequence[Column]) -> tuple[list[float], list[float]]:
    """Width and height of each column: equal areas an equal number of parameters, as large as they fit."""
    areas = [0.0 if column.is_tied else float(column.parameters) for column in columns]
    fixed = [TIED if column.is_tied else NARROWEST if column.times == 1 else FOLDED for column in columns]
    room = WIDTH - GAP * max(0, len(columns) - 1)

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


def _stacked(parts: Sequence[Part], left: float, width: float, height: float) -> Iterator[_Box]:
    """Second names, one below the other at the foot of the columns, where their curves end."""
    own = height / len(parts)
    for number, part in enumerate(parts):
        yield _Box(part, left, HEIGHT - height + number * own, width, own)


def _placed(parts: Sequence[Part], left: float, width: float, height: float) -> Iterator[_Box]:
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


def _row(row: Sequence[Part], left: float, top: float, width: float, scale: float) -> Iterator[_Box]:
    height = _row_height(row, width, scale)
    for part in row:
        own = part.parameters * scale / height
        yield _Box(part, left, top, own, max(height, THINNEST))
        left += own


def _oddest(row: Sequence[Part], width: float, scale: float) -> float:
    """The largest ratio of sides in a row."""
    height = _row_height(row, width, scale)
    widths = [part.parameters * scale / height for part in row]
    return max(max(own / height, height / own) for own in widths)


def _grouped(boxes: Sequence[_Box], color: str) -> dict[str, list[_Box]]:
    """The rectangles by what their color tells, in the order of the legend; second names come last."""
    sizes: Counter[str] = Counter()
    for box in boxes:
        if box.part.kind != "tied":
            sizes[_told(box.part, color)] += box.part.parameters
    names = [name for name, _ in sizes.most_common()] if color != "kind" else list(KINDS.values())
    many = len(names) > len(PATTERNS)
    own = names[: len(PATTERNS) - 1] if many else names
    found: dict[str, list[_Box]] = {name: [] for name in own}
    for box in boxes:
        tied = box.part.kind == "tied"
        name = KINDS["tied"] if tied else _told(box.part, color)
        found.setdefault(name if tied or name in own else f"{len(names) - len(own):,} others", []).append(box)
    tied = found.pop(KINDS["tied"], [])
    return {name: group for name, group in (found | {KINDS["tied"]: tied}).items() if group}


def told_by(portrait: Portrait, color: str) -> set[str]:
    """What the colors of a portrait tell apart, second names aside."""
    return {_told(part, color) for part in portrait.parts if part.kind != "tied"}


def _told(part: Part, color: str) -> str:
    """What a rectangle's color tells of it."""
    if color == "dtype":
        return part.dtype
    if color == "file":
        return part.files[0] if len(part.files) == 1 else "several files"
    return KINDS[part.kind]


def _ground(part: Part, number: int, color: str, theme: Theme) -> str:
    """The color of a rectangle: soft, as the areas are large."""
    kinds: dict[Kind, str] = dict(zip(KINDS, (theme.groups[each] for each in (1, 2, 4, 5, 3, 6, 0)), strict=True))
    if part.kind == "tied":
        return kinds["tied"]
    if color == "kind":
        return theme.muted if part.kind == "vectors" else look.mix(kinds[part.kind], theme.page, SOFT)
    return look.mix(theme.groups[ORDER[number % len(ORDER)]], theme.page, SOFT)


def _bars(boxes: Sequence[_Box], parts: Sequence[Part], *, name: str, color: str, pattern: str, theme: Theme) -> go.Bar:
    tied = boxes[0].part.kind == "tied"
    hatch = {"shape": "/", "fgcolor": color, "size": 7, "solidity": 0.16} if tied else {}
    marks = {
        "shape": pattern,
        "fillmode": "overlay",
        "fgcolor": look.ink_on(color),
        "fgopacity": 0.3,
        "size": 9,
        "solidity": 0.1,
    }
    return go.Bar(
        name=plain(shorten(name, 40)),
        x=[box.left + box.width / 2 for box in boxes],
        width=[box.width for box in boxes],
        base=[box.top for box in boxes],
        y=[box.height for box in boxes],
        customdata=[parts.index(box.part) for box in boxes],
        hovertext=[_hover(box.part) for box in boxes],
        hoverinfo="text",
        marker={
            "color": theme.page if tied else color,
            "line": {"color": color if tied else theme.page, "width": 1.5 if tied else 1},
            "pattern": hatch or (marks if pattern else {}),
        },
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _hover(part: Part) -> str:
    what = plain(part.pattern or part.label)
    if part.kind == "vectors":
        return f"{what}<br>{plural(part.count, 'vector')}: {part.parameters:,} parameters"
    each = f"{part.count:,} × " if part.count > 1 else ""
    end = "the same tensor under a second name" if part.kind == "tied" else f"{part.parameters:,} parameters"
    return f"{what}<br>{each}{shape_text(part.shape)}, {part.dtype}<br>{end}"


def _headers(columns: Sequence[Column], lefts: Sequence[float], theme: Theme) -> list[dict[str, Any]]:
    """What each column is, where there is room for it."""
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
    return [
        _text(plain(text), (lefts[number], -HEADER / 2), theme.ink, size=TEXT, anchor="left") | {"yanchor": "middle"}
        for number, text in texts.items()
        if text
    ]


def _first_fitting(texts: Sequence[str], room: float) -> str:
    return next((text for text in texts if text_width(text, TEXT) <= room), "")


def _labels(boxes: Sequence[_Box], grounds: dict[Part, str], theme: Theme) -> list[dict[str, Any]]:
    """Names and shapes inside the rectangles that have room for them."""
    found = []
    for box in boxes:
        part = box.part
        if part.kind == "vectors":
            continue
        ground = theme.page if part.kind == "tied" else grounds[part]
        ink = theme.ink if part.kind == "tied" else look.ink_on(ground)
        name = f"{part.label} × {part.count}" if part.count > 1 else part.label
        size = "same tensor" if part.kind == "tied" else shape_text(part.shape)
        names = [name, name[0].upper()] if part.kind == "attention" else [name]
        fitting = [each for each in names if text_width(each, SMALL) <= box.width - 4]
        lines = fitting[:1] if box.height >= 15 else []
        if lines and text_width(size, SMALL) <= box.width - 6 and box.height >= 32:
            lines.append(size)
        if lines:
            middle = box.left + box.width / 2, box.top + box.height / 2
            text = "<br>".join(plain(line) for line in lines)
            found.append(
                _text(text, middle, ink, size=SMALL, anchor="center")
                | {"yanchor": "middle"}
                | ({"bgcolor": theme.page} if part.kind == "tied" else {})
            )
    return found


def _text(text: str, place: tuple[float, float], color: str, *, size: int, anchor: str) -> dict[str, Any]:
    return {
        "text": text,
        "x": place[0],
        "y": place[1],
        "xanchor": anchor,
        "showarrow": False,
        "font": {"color": color, "size": size},
        "borderpad": 1,
    }


def _loop(source: _Box, second: _Box, bottom: float, theme: Theme) -> dict[str, Any]:
    """A curve below the columns, from a matrix to its second name."""
    start, end = source.left + source.width / 2, second.left + second.width / 2
    begin, stop = source.top + source.height, second.top + second.height
    return {
        "type": "path",
        "path": f"M {start:.1f},{begin:.1f} C {start:.1f},{bottom:.1f} {end:.1f},{bottom:.1f} {end:.1f},{stop:.1f}",
        "line": {"color": theme.groups[0], "width": 1.5},
        "layer": "below",
    }


def _tied_label(source: _Box, second: _Box, bottom: float, theme: Theme) -> dict[str, Any]:
    start = min(source.top + source.height, second.top + second.height)
    middle = (source.left + source.width / 2 + second.left + second.width / 2) / 2
    text = f"tied: one tensor, {count_text(source.part.parameters)} parameters"
    lowest = start + 0.75 * (bottom - start)
    return _text(text, (middle, min(lowest, bottom - 8)), theme.groups[0], size=TEXT, anchor="center") | {
        "yanchor": "middle",
        "bgcolor": theme.page,
        "borderpad": 3,
    }
