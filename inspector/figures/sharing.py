"""The graph of names and the tensors that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.figures import theme as look
from inspector.figures.frames import column
from inspector.figures.sharing_words import (
    BOX,
    BOX_LEFT,
    BOX_RIGHT,
    NAME_LENGTH,
    NODE,
    NODE_TEXT,
    NODE_X,
    PITCH,
    VERDICTS,
    group_letter,
    node_heights,
    node_hover,
    node_text,
    row_detail,
    row_hovers,
    row_y,
)
from inspector.figures.text import count_text, plain, shorten_name
from inspector.figures.theme import LIGHT, MONO, Theme
from inspector.results import SharedGroup

__all__ = ["group_letter", "sharing_graph"]


def sharing_graph(
    rows: pd.DataFrame,
    groups: Sequence[SharedGroup],
    *,
    title: str,
    subtitle: str = "",
    theme: Theme = LIGHT,
    tensors: pd.DataFrame | None = None,
) -> go.Figure:
    """Draw which parameter names are one tensor.

    Names stand on the left in execution order, with a bar for their size; those that share run
    along a curve into a node for what is stored. Letters and line styles repeat what colour says.

    Args:
        rows: `Sharing.rows`: label, tensors, parameters, nbytes, shape, group (-1: not shared).
        groups: `Sharing.groups`, to which `group` points.
        title: Of the figure, with the checkpoint's name.
        subtitle: One more line of plain text.
        theme: Colours.
        tensors: `Sharing.tensors`, for dtype and file in the hover text.

    Returns:
        A figure whose trace "names" is one clickable bar a row and whose trace "storage" is one
        marker a storage node. Their customdata is the row's index; a node carries its first row's.
    """
    heights = node_heights(rows)
    below = max([max(len(rows), 2) * PITCH, *(y + NODE / 2 for y in heights.values())])
    figure = go.Figure(
        layout=look.layout(
            title=plain(title),
            subtitle=plain(subtitle),
            theme=theme,
            height=round(below + look.title_height(title, subtitle) + 16),
        )
    )
    figure.update_layout(
        xaxis=look.hidden_axis(-0.5, 100.0),
        yaxis=look.hidden_axis(below, 0.0),
        barmode="overlay",
        bargap=0,
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        clickmode="event+select",
    )
    figure.add_traces(
        [
            _boxes(rows, theme=theme, tensors=tensors),
            _sizes(rows, theme=theme),
            *_curves(rows, groups, heights, theme=theme),
            _ends(rows, groups, theme=theme),
            _nodes(rows, groups, heights, theme=theme),
        ]
    )
    texts = _row_texts(rows, theme=theme) + _node_texts(groups, heights, theme=theme)
    if not heights:
        texts.append(_nothing_shared(len(rows), theme=theme))
    figure.update_layout(annotations=texts)  # all at once: one by one takes quadratic time
    return figure


def _color(group: int, theme: Theme, *, alone: str) -> str:
    return alone if group < 0 else theme.groups[group % len(theme.groups)]


def _boxes(rows: pd.DataFrame, *, theme: Theme, tensors: pd.DataFrame | None) -> go.Bar:
    return go.Bar(
        name="names",
        orientation="h",
        y=[row_y(index) for index in range(len(rows))],
        base=[BOX_LEFT] * len(rows),
        x=[BOX_RIGHT - BOX_LEFT] * len(rows),
        width=[BOX] * len(rows),
        customdata=list(range(len(rows))),
        marker={
            "color": theme.surface,
            "line": {
                "color": [_color(group, theme, alone=theme.edge) for group in rows["group"]],
                "width": [1 if group < 0 else 2 for group in rows["group"]],
            },
        },
        hovertext=row_hovers(rows, tensors),
        hoverinfo="text",
        selected={"marker": {"color": look.alpha(theme.accent, 0.22), "opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _sizes(rows: pd.DataFrame, *, theme: Theme) -> go.Bar:
    largest = max([1, *column(rows, "nbytes")])
    return go.Bar(
        name="size",
        orientation="h",
        y=[row_y(index) + BOX / 2 - 2.5 for index in range(len(rows))],
        base=[BOX_LEFT] * len(rows),
        x=[max(0.4, (BOX_RIGHT - BOX_LEFT) * nbytes / largest) for nbytes in rows["nbytes"]],
        width=[5.0] * len(rows),
        marker={
            "color": [_color(group, theme, alone=theme.muted) for group in rows["group"]],
            "line": {"width": 0},
        },
        hoverinfo="skip",
        unselected={"marker": {"opacity": 1}},
    )


def _curves(
    rows: pd.DataFrame,
    groups: Sequence[SharedGroup],
    heights: dict[int, float],
    *,
    theme: Theme,
) -> list[go.Scatter]:
    step = np.linspace(0.0, 1.0, 33)
    across = BOX_RIGHT + (NODE_X - BOX_RIGHT) * step
    ease = step * step * (3 - 2 * step)  # level at both ends
    curves = []
    for index, group in enumerate(rows["group"]):
        if group not in heights:
            continue
        start = row_y(index)
        curves.append(
            go.Scatter(
                name=f"row {index}",
                x=across,
                y=start + (heights[group] - start) * ease,
                mode="lines",
                line={
                    "color": _color(group, theme, alone=theme.muted),
                    "width": 2.5,
                    "dash": VERDICTS[groups[group].verdict].dash,
                },
                hoverinfo="skip",
            )
        )
    return curves


def _ends(rows: pd.DataFrame, groups: Sequence[SharedGroup], *, theme: Theme) -> go.Scatter:
    row_groups = column(rows, "group")
    tied = [index for index, group in enumerate(row_groups) if group >= 0]
    of = [row_groups[index] for index in tied]
    colors = [_color(group, theme, alone=theme.muted) for group in of]
    return go.Scatter(
        name="ends",
        x=[BOX_RIGHT] * len(tied),
        y=[row_y(index) for index in tied],
        mode="markers+text",
        marker={
            "symbol": [VERDICTS[groups[group].verdict].symbol for group in of],
            "size": 17,
            "color": colors,
            "opacity": 1,
        },
        text=[group_letter(group) for group in of],
        textfont={"size": 10, "color": look.ink_on(theme.groups[0])},
        hoverinfo="skip",
        unselected=_unchanged(theme),
    )


def _nodes(
    rows: pd.DataFrame,
    groups: Sequence[SharedGroup],
    heights: dict[int, float],
    *,
    theme: Theme,
) -> go.Scatter:
    order = sorted(heights)
    colors = [_color(group, theme, alone=theme.muted) for group in order]
    row_groups = column(rows, "group")
    return go.Scatter(
        name="storage",
        x=[NODE_X] * len(order),
        y=[heights[group] for group in order],
        mode="markers+text",
        customdata=[row_groups.index(group) for group in order],
        marker={
            "symbol": [VERDICTS[groups[group].verdict].symbol for group in order],
            "size": 22,
            "color": colors,
            "line": {"color": theme.page, "width": 1.5},
            "opacity": 1,
        },
        text=[group_letter(group) for group in order],
        textfont={"size": 11, "color": look.ink_on(theme.groups[0])},
        hovertext=[node_hover(groups[group]) for group in order],
        hoverinfo="text",
        unselected=_unchanged(theme),
    )


def _unchanged(theme: Theme) -> dict[str, Any]:
    """Keep what was not clicked as it is; Plotly would dim it."""
    ink = look.ink_on(theme.groups[0])
    return {"marker": {"opacity": 1}, "textfont": {"color": ink}}


def _row_texts(rows: pd.DataFrame, *, theme: Theme) -> list[dict[str, Any]]:
    texts = []
    for index, row in enumerate(rows.to_dict("records")):
        tied = row["group"] >= 0
        name = plain(shorten_name(row["label"], NAME_LENGTH))
        color = _color(row["group"], theme, alone=theme.ink)
        texts.append(
            {
                **_text(f"<b>{name}</b>" if tied else name, BOX_LEFT + 1, row_y(index) - 8),
                "font": {"family": MONO, "size": 12, "color": color},
            }
        )
        detail = f"{row_detail(row)} · {count_text(row['parameters'])}"
        texts.append(
            {
                **_text(detail, BOX_LEFT + 1, row_y(index) + 7),
                "font": {"size": 11, "color": theme.muted},
            }
        )
    return texts


def _node_texts(
    groups: Sequence[SharedGroup], heights: dict[int, float], *, theme: Theme
) -> list[dict[str, Any]]:
    font = {"size": 12, "color": theme.ink}
    return [
        {**_text(node_text(groups[group]), NODE_TEXT, y), "font": font}
        for group, y in heights.items()
    ]


def _nothing_shared(count: int, *, theme: Theme) -> dict[str, Any]:
    text = "<b>nothing is shared</b><br>each name has<br>a tensor of its own"
    return {
        **_text(text, BOX_RIGHT + 8, max(count, 2) * PITCH / 2),
        "font": {"size": 13, "color": theme.muted},
    }


def _text(text: str, x: float, y: float) -> dict[str, Any]:
    return {"text": text, "x": x, "y": y, "align": "left", "xanchor": "left", "showarrow": False}
