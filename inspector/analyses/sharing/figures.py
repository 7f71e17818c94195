"""The graph of names and the tensors that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.sharing.figures_layout import BETWEEN, LINE, PART, PARTS, Node, SharingLayout, arrange
from inspector.analyses.sharing.figures_narrow import arrange_narrow
from inspector.analyses.sharing.figures_words import (
    VERDICTS,
    apart_texts,
    group_letter,
    node_hover,
    part_text,
    row_hovers,
    row_texts,
    sharing_subtitle,
    sign_between,
    tied_text,
)
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.plotting import theme as look
from inspector.plotting.frames import column
from inspector.plotting.theme import LIGHT, MONO, Theme
from inspector.text import plain

BAR = 3.0  # pixels: the strip that shows a row's size
EDGE = 2.0  # above and below, for the outlines of the first and last box
RADIUS = 8.0  # of the letter at the end of a row
SECOND = 9.0  # of two lines in a row, each from the middle
LEAST = 620  # pixels for which names and sizes stand beside each other: on a phone a report draws it smaller


def sharing_graph(
    rows: pd.DataFrame,
    groups: Sequence[SharedGroup],
    tensors: pd.DataFrame,
    *,
    title: str,
    subtitle: str = "",
    narrow: bool = False,
    theme: Theme = LIGHT,
) -> go.Figure:
    """Draw which parameter names are one tensor.

    Names stand on the left in the model's order, with a bar for their size; those that share run
    along a curve to what is stored: one box where they are one tensor, else a box a tensor with
    = or ≠ between them. Letters, shapes and line styles repeat what color says.

    Args:
        rows: `Sharing.rows`: label, tensors, parameters, nbytes, shape, group (-1: not shared).
        groups: `Sharing.groups`, to which `group` points.
        tensors: `Sharing.tensors`: which groups a row holds, and for the hover text each tensor's
            dtype, place in memory and file.
        narrow: For a phone: what is stored stands below its last name.

    Returns:
        A figure whose trace "names" is one clickable bar a row and whose trace "storage" is one
        bar a tensor. Their customdata is the row's index; a tensor carries its first row's.
    """
    layout = (arrange_narrow if narrow else arrange)(rows, groups, tensors)
    figure = look.figure(
        title,
        subtitle,
        theme=theme,
        height=round(layout.bottom + look.title_height(title, subtitle) + 16 + 2 * EDGE),
        meta={"least": layout.width if narrow else LEAST},
        xaxis=look.hidden_axis(-0.5, layout.width + 0.5),
        yaxis=look.hidden_axis(layout.bottom + EDGE, -EDGE),
        barmode="overlay",
        bargap=0,
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
    )
    figure.add_traces(
        [
            _boxes(rows, layout, theme=theme, tensors=tensors),
            _sizes(rows, layout, theme=theme),
            _storage(layout, groups, theme=theme),
            *_curves(layout, groups, theme=theme),
            _ends("ends", _row_ends(layout), groups, theme=theme),
            _ends("ports", _ports(layout), groups, theme=theme),
        ]
    )
    texts = _row_annotations(rows, layout, narrow=narrow, theme=theme)
    texts += _node_annotations(layout, rows, groups, theme=theme)
    if not layout.nodes:
        texts.append(_nothing_shared(layout, theme=theme))
    figure.layout.annotations = texts  # all at once: one by one takes quadratic time
    return figure


def _color(group: int, theme: Theme, *, alone: str) -> str:
    return alone if group < 0 else theme.groups[group % len(theme.groups)]


def _boxes(rows: pd.DataFrame, layout: SharingLayout, *, theme: Theme, tensors: pd.DataFrame) -> go.Bar:
    return go.Bar(
        name="names",
        orientation="h",
        y=list(layout.ys),
        base=[0.0] * len(rows),
        x=[layout.right] * len(rows),
        width=[layout.box] * len(rows),
        customdata=list(range(len(rows))),
        marker={
            "color": theme.surface,
            "line": {
                "color": [_color(group, theme, alone=theme.edge) for group in rows["group"]],
                "width": [1 if group < 0 else 1.5 for group in rows["group"]],
            },
        },
        hovertext=row_hovers(rows, tensors),
        hoverinfo="text",
        **_selectable(theme),
    )


def _sizes(rows: pd.DataFrame, layout: SharingLayout, *, theme: Theme) -> go.Bar:
    largest = max([1, *column(rows, "nbytes")])
    return go.Bar(
        name="size",
        orientation="h",
        y=[y + (layout.box - BAR) / 2 - 0.5 for y in layout.ys],
        base=[0.0] * len(rows),
        x=[max(0.003 * layout.width, layout.right * nbytes / largest) for nbytes in rows["nbytes"]],
        width=[BAR] * len(rows),
        marker={"color": [_color(group, theme, alone=theme.muted) for group in rows["group"]], "line": {"width": 0}},
        hoverinfo="skip",
        unselected={"marker": {"opacity": 1}},
    )


def _storage(layout: SharingLayout, groups: Sequence[SharedGroup], *, theme: Theme) -> go.Bar:
    boxes = [(node, part) for node in layout.nodes for part in node.parts]
    return go.Bar(
        name="storage",
        orientation="h",
        y=[part.y for _, part in boxes],
        base=[layout.node_left] * len(boxes),
        x=[layout.node_right - layout.node_left] * len(boxes),
        width=[part.height for _, part in boxes],
        customdata=[part.rows[0] for _, part in boxes],
        marker={
            "color": theme.surface,
            "line": {"color": [_color(node.group, theme, alone=theme.edge) for node, _ in boxes], "width": 1.5},
        },
        hovertext=[node_hover(node, groups) for node, _ in boxes],
        hoverinfo="text",
        **_selectable(theme),
    )


def _selectable(theme: Theme) -> dict[str, Any]:
    """Mark what was clicked, and keep the rest as it is; Plotly would dim it."""
    return {
        "selected": {"marker": {"color": look.alpha(theme.accent, 0.22), "opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
    }


def _curves(layout: SharingLayout, groups: Sequence[SharedGroup], *, theme: Theme) -> list[go.Scatter]:
    return [
        go.Scatter(
            name=f"row {curve.row}",
            x=curve.x,
            y=curve.y,
            mode="lines",
            line={
                "color": _color(curve.group, theme, alone=theme.muted),
                "width": 2,
                "dash": VERDICTS[groups[curve.group].verdict].dash,
            },
            hoverinfo="skip",
        )
        for curve in layout.curves
    ]


def _row_ends(layout: SharingLayout) -> list[tuple[float, float, int]]:
    """(x, y, group) of every row's end."""
    rows = sorted((row, node.group) for node in layout.nodes for row in node.rows)  # from top to bottom
    return [(layout.right, layout.ys[row], group) for row, group in rows]


def _ports(layout: SharingLayout) -> list[tuple[float, float, int]]:
    """(x, y, group) of where curves end at tensors."""
    return [(layout.port, part.y, node.group) for node in layout.nodes for part in node.parts]


def _ends(
    name: str, ends: Sequence[tuple[float, float, int]], groups: Sequence[SharedGroup], *, theme: Theme
) -> go.Scatter:
    ink = look.ink_on(theme.groups[0])
    return go.Scatter(
        name=name,
        x=[x for x, _, _ in ends],
        y=[y for _, y, _ in ends],
        mode="markers+text",
        marker={
            "symbol": [VERDICTS[groups[group].verdict].symbol for *_, group in ends],
            "size": 2 * RADIUS,
            "color": [_color(group, theme, alone=theme.muted) for *_, group in ends],
            "opacity": 1,
        },
        text=[group_letter(group) for *_, group in ends],
        textfont={"size": 11, "color": ink},
        hoverinfo="skip",
        unselected={"marker": {"opacity": 1}, "textfont": {"color": ink}},
    )


def _row_annotations(rows: pd.DataFrame, layout: SharingLayout, *, narrow: bool, theme: Theme) -> list[dict[str, Any]]:
    """A row's name and size: beside each other, or on a phone one above the other."""
    texts = []
    for row, y in zip(rows.to_dict("records"), layout.ys, strict=True):
        name, detail = row_texts(row, room=layout.right if narrow else None)
        name = f"<b>{name}</b>" if row["group"] >= 0 else name
        font = {"family": MONO, "size": 12, "color": _color(row["group"], theme, alone=theme.ink)}
        small = {"size": 11.5, "color": theme.muted}
        if narrow:
            texts += [
                _text(name, 0.0, y - SECOND, shift=9, font=font),
                _text(detail, 0.0, y + SECOND - BAR, shift=9, font=small),
            ]
        else:
            texts += [
                _text(name, 0.0, y - 1, shift=9, font=font),
                _text(detail, layout.right, y - 1, shift=-RADIUS - 5, anchor="right", font=small),
            ]
    return texts


def _node_annotations(
    layout: SharingLayout, rows: pd.DataFrame, groups: Sequence[SharedGroup], *, theme: Theme
) -> list[dict[str, Any]]:
    lines = rows.to_dict("records")
    texts = []
    for node in layout.nodes:
        if len(node.parts) == 1 and node.tied:
            texts.append(_beside(tied_text(node, groups), layout.node_left, node.parts[0].y, theme))
        else:
            texts += _apart(node, layout.node_left, lines, groups, theme=theme)
    return texts


def _apart(
    node: Node, left: float, lines: Sequence[dict[str, Any]], groups: Sequence[SharedGroup], *, theme: Theme
) -> list[dict[str, Any]]:
    group = groups[node.group]
    head, foot = apart_texts(node, groups)
    color = _color(node.group, theme, alone=theme.ink)
    above, below = node.parts[0], node.parts[-1]
    texts = [
        _beside(head, left, above.y - above.height / 2 - LINE / 2, theme),
        _beside(foot, left, below.y + below.height / 2 + LINE / 2, theme, ink=theme.muted),
    ]
    for index, part in enumerate(node.parts):
        rest = index == PARTS - 1 and len(part.rows) > 1
        texts.append(_beside(part_text(part, lines, rest=rest, group=group), left, part.y, theme))
        if index:
            sign = f"<b>{plain(sign_between(group))}</b>"
            font = {"size": 16, "color": color}
            y = part.y - (PART + BETWEEN) / 2
            texts.append(_text(sign, left, y, shift=14, font=font))
    return texts


def _beside(text: str, left: float, y: float, theme: Theme, *, ink: str = "") -> dict[str, Any]:
    font = {"size": 12, "color": ink or theme.ink}
    return _text(text, left, y, shift=RADIUS + 6, font=font)


def _nothing_shared(layout: SharingLayout, *, theme: Theme) -> dict[str, Any]:
    text = "<b>nothing is shared</b><br>each name has<br>its own tensor"
    return _text(text, *layout.aside, shift=32, font={"size": 13, "color": theme.muted})


def _text(text: str, x: float, y: float, *, shift: float, font: dict[str, Any], anchor: str = "left") -> dict[str, Any]:
    return {
        "text": text,
        "x": x,
        "y": y,
        "xshift": shift,
        "xanchor": anchor,
        "align": anchor,
        "borderpad": 0,
        "font": font,
        "showarrow": False,
    }


def figure(result: Sharing, *, name: str, narrow: bool = False, theme: Theme = LIGHT) -> go.Figure:
    """Draw the result's main figure: which parameter names are one tensor.

    Args:
        name: Of the checkpoint.
        narrow: For a phone.
    """
    title, subtitle = f"Names and tensors of {name}", sharing_subtitle(result)
    return sharing_graph(
        result.rows, result.groups, result.tensors, title=title, subtitle=subtitle, narrow=narrow, theme=theme
    )
