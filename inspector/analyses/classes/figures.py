"""The family tree of a model class: what it is made from, and its siblings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from inspector.analyses.classes.result import AncestorClass, SiblingClass
from inspector.plotting import theme as look
from inspector.plotting.lettering import text_width
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import plain

ROW, ROW_NARROW = 30, 44  # pixels
INDENT, INDENT_NARROW = 26, 40  # of 1000 across the figure
LEAST, LEAST_NARROW = 480, 320  # pixels that names take with their remarks beside them, and at least below them
NAME, MARK = 14, 40  # pixels of a name's letters, and of what is beside it
WRAP = 70  # characters in a hover's line
OWN, LOADS, RANDOM, ANCESTOR = "own", "loads", "random", "ancestor"


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    depth: int
    parent: int  # row of the class that it is made from; -1: the root
    kind: str
    remark: str
    hover: str


def class_tree(
    hierarchy: Sequence[AncestorClass],
    siblings: Sequence[SiblingClass],
    *,
    name: str,
    narrow: bool = False,
    theme: Theme = LIGHT,
) -> go.Figure:
    """Draw the model classes from torch.nn.Module down, the siblings marked by what they lack.

    Args:
        hierarchy: `ModelClasses.hierarchy`, in method resolution order.
        siblings: `ModelClasses.siblings`, the model's own class first.
        name: Of the checkpoint.
        narrow: For a phone: what is said of a class stands below its name.

    Returns:
        One row a class; full marks are classes whose weights the file holds.
    """
    rows = list(_rows(hierarchy, siblings))
    title = f"The family of {hierarchy[0].name}, {name}"
    subtitle = "filled: the file has all weights; hollow: some weights would be random"
    indent = INDENT_NARROW if narrow else INDENT
    height = look.title_height(title, subtitle) + (ROW_NARROW if narrow else ROW) * len(rows) + 16
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=height,
        meta={"least": _narrowest(rows) if narrow else LEAST},
        xaxis=look.hidden_axis(-12, 1000),
        yaxis=look.hidden_axis(len(rows) - 0.4, -0.6),
        showlegend=False,
    )
    figure.add_trace(_elbows(rows, indent, theme))
    figure.add_trace(
        go.Scatter(
            x=[row.depth * indent for row in rows],
            y=list(range(len(rows))),
            mode="markers+text",
            text=["<br>".join(f"  {line}" for line in _lines(row, theme, narrow=narrow)) for row in rows],
            textposition="middle right",
            textfont={"size": NAME, "color": theme.ink},
            hovertext=[row.hover for row in rows],
            hoverinfo="text",
            cliponaxis=False,
            marker={
                "size": [13 if row.kind != ANCESTOR else 9 for row in rows],
                "symbol": ["circle" if row.kind != RANDOM else "circle-open" for row in rows],
                "color": [_color(row.kind, theme) for row in rows],
                "opacity": 1,
                "line": {"width": 2, "color": [_color(row.kind, theme) for row in rows]},
            },
        )
    )
    return figure


def _rows(hierarchy: Sequence[AncestorClass], siblings: Sequence[SiblingClass]) -> Iterator[_Row]:
    chain = [each for each in reversed(hierarchy) if each.kind == "class"][:-1]
    places: dict[str, int] = {}
    for depth, each in enumerate(chain):
        mixins = [m.name for m in hierarchy if m.kind == "mixin" and m.via == each.name]
        remark = each.module.removeprefix("transformers.")
        if mixins:
            remark += f" · {len(mixins)} mixins" if len(mixins) > 1 else f" · {mixins[0]}"
        places[each.name] = depth
        name = "torch.nn.Module" if depth == 0 else each.name
        hover = _hover(
            each.name, each.summary, "adds " + ", ".join(each.adds), "mixins: " + ", ".join(mixins) if mixins else ""
        )
        yield _Row(name, depth, depth - 1, ANCESTOR, remark, hover)
    for number, each in enumerate(siblings):
        parent = places.get(each.parent, len(chain) - 1)
        kind = OWN if number == 0 else LOADS if each.present else RANDOM
        remark = "this checkpoint's class" if number == 0 else _state(each)
        if number == 0 and not each.present:
            kind, remark = RANDOM, f"{remark} · {_state(each)}"
        if each.parent not in places:
            remark += f" · from {each.parent}"
        hover = _hover(each.name, each.summary, each.note)
        yield _Row(each.name, parent + 1, parent, kind, remark, hover)


def _state(sibling: SiblingClass) -> str:
    if sibling.present:
        return "all weights in the file" if not sibling.missing else "loads, but without its pooler"
    if sibling.missing:
        return f"{sibling.missing} tensors would be random" if sibling.missing > 1 else ("1 tensor would be random")
    return "does not fit" if sibling.note.startswith("It does not") else "trained with another head"


def _hover(name: str, *parts: str) -> str:
    lines = (line for part in parts if part for line in textwrap.wrap(part, WRAP))
    return "<br>".join([f"<b>{plain(name)}</b>", *map(plain, lines)])


def _narrowest(rows: Sequence[_Row]) -> int:
    """Pixels in which each name fits right of its mark."""
    needed = ((MARK + text_width(row.name, NAME)) / (1 - row.depth * INDENT_NARROW / 1000) for row in rows)
    return max(LEAST_NARROW, *map(round, needed))


def _lines(row: _Row, theme: Theme, *, narrow: bool) -> list[str]:
    name = f"<b>{plain(row.name)}</b>" if row.kind in (OWN, LOADS) else plain(row.name)
    remark = f'<span style="color:{theme.muted};font-size:12px">{plain(row.remark)}</span>'
    return [name, remark] if narrow else [f"{name}  {remark}"]


def _color(kind: str, theme: Theme) -> str:
    return {OWN: theme.groups[0], LOADS: theme.groups[2], ANCESTOR: theme.muted}.get(kind, theme.muted)


def _elbows(rows: Sequence[_Row], indent: int, theme: Theme) -> go.Scatter:
    x: list[float | None] = []
    y: list[float | None] = []
    for place, row in enumerate(rows):
        if row.parent >= 0:
            left = rows[row.parent].depth * indent
            x += [left, left, row.depth * indent, None]
            y += [row.parent, place, place, None]
    return go.Scatter(x=x, y=y, mode="lines", hoverinfo="skip", line={"width": 1.5, "color": theme.edge})
