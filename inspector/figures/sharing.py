"""The graph of names and the tensors that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from inspector.figures import theme as look
from inspector.figures.frames import column
from inspector.figures.text import (
    bytes_text,
    count_text,
    plain,
    plural,
    shape_text,
    shorten_middle,
)
from inspector.figures.theme import LIGHT, MONO, Theme
from inspector.results import SharedGroup

PITCH, BOX = 46.0, 38.0  # pixels from row to row, and of a row's box
NODE = 82.0  # pixels that a storage node's label needs
BOX_LEFT, BOX_RIGHT, NODE_X, NODE_TEXT = 0.0, 58.0, 73.0, 75.8  # per cent of the width
NAME_LENGTH = 38  # characters that fit into a box in a figure of 540 pixels


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one verdict of `SharedGroup` is drawn and worded; {n} names, {size} one copy."""

    dash: str
    symbol: str
    heading: str
    storage: str


VERDICTS = {
    "tied": Verdict("solid", "circle", "one tensor, {n} names", "stored {size}<br>saves {rest}"),
    "equal copies": Verdict(
        "dash", "square", "{n} equal copies", "stored {all}<br>tying saves {rest}"
    ),
    "diverged": Verdict("dot", "diamond", "{n} values diverged", "stored {all}"),
    "declared only": Verdict(
        "dashdot", "hexagon", "{n} names,<br>tie only declared", "one copy: {size}"
    ),
    "alias only": Verdict(
        "longdash", "octagon", "{n} names,<br>alias in file only", "one copy: {size}"
    ),
}


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
    heights = _node_heights(rows)
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
    _write_rows(figure, rows, theme=theme)
    _write_nodes(figure, groups, heights, theme=theme)
    if not heights:
        _write_nothing_shared(figure, len(rows), theme=theme)
    return figure


def group_letter(group: int) -> str:
    """Name a group A, B, ..., Z, AA, AB, ..., so that colour is not the only cue."""
    letters = ""
    while group >= 0:
        letters = chr(ord("A") + group % 26) + letters
        group = group // 26 - 1
    return letters


def _row_y(index: int) -> float:
    return (index + 0.5) * PITCH


def _color(group: int, theme: Theme, *, alone: str) -> str:
    return alone if group < 0 else theme.groups[group % len(theme.groups)]


def _node_heights(rows: pd.DataFrame) -> dict[int, float]:
    """Place each storage node beside the middle of its rows, without overlaps."""
    members: dict[int, list[float]] = {}
    for index, group in enumerate(column(rows, "group")):
        if group >= 0:
            members.setdefault(group, []).append(_row_y(index))
    wanted = {group: float(np.mean(places)) for group, places in members.items()}
    order = sorted(wanted, key=lambda group: (wanted[group], group))
    bottom = max(len(rows) * PITCH, len(order) * NODE)
    placed: dict[int, float] = {}
    ceiling = 0.0
    for group in order:
        placed[group] = max(wanted[group], ceiling + NODE / 2)
        ceiling = placed[group] + NODE / 2
    for group in reversed(order):
        placed[group] = min(placed[group], bottom - NODE / 2)
        bottom = placed[group] - NODE / 2
    return placed


def _boxes(rows: pd.DataFrame, *, theme: Theme, tensors: pd.DataFrame | None) -> go.Bar:
    return go.Bar(
        name="names",
        orientation="h",
        y=[_row_y(index) for index in range(len(rows))],
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
        hovertext=_row_hovers(rows, tensors),
        hoverinfo="text",
        selected={"marker": {"color": look.alpha(theme.accent, 0.22), "opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _row_hovers(rows: pd.DataFrame, tensors: pd.DataFrame | None) -> list[str]:
    known = {} if tensors is None else tensors.set_index("name").to_dict("index")
    hovers = []
    for row in rows.to_dict("records"):
        lines = [f"<b>{plain(row['label'])}</b>", _row_detail(row)]
        lines.append(f"{row['parameters']:,} parameters · {bytes_text(row['nbytes'])}")
        tensor = known.get(row["label"])
        if tensor is not None:
            file = plain(tensor["file"]) if tensor["file"] else "under another name"
            lines.append(f"{plain(tensor['dtype'])} · in the file: {file}")
        hovers.append("<br>".join(lines))
    return hovers


def _row_detail(row: dict) -> str:
    return plain(row["shape"]) if row["shape"] else plural(row["tensors"], "tensor")


def _sizes(rows: pd.DataFrame, *, theme: Theme) -> go.Bar:
    largest = max([1, *column(rows, "nbytes")])
    return go.Bar(
        name="size",
        orientation="h",
        y=[_row_y(index) + BOX / 2 - 2.5 for index in range(len(rows))],
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
        start = _row_y(index)
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
        y=[_row_y(index) for index in tied],
        mode="markers+text",
        marker={
            "symbol": [VERDICTS[groups[group].verdict].symbol for group in of],
            "size": 17,
            "color": colors,
            "opacity": 1,
        },
        text=[group_letter(group) for group in of],
        textfont={"size": 10, "color": [look.ink_on(color) for color in colors]},
        hoverinfo="skip",
        unselected={"marker": {"opacity": 1}},
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
        textfont={"size": 11, "color": [look.ink_on(color) for color in colors]},
        hovertext=[_node_hover(groups[group]) for group in order],
        hoverinfo="text",
        unselected={"marker": {"opacity": 1}},
    )


def _node_hover(group: SharedGroup) -> str:
    names = [plain(name) for name in group.names[:12]]
    if len(group.names) > 12:
        names.append(f"and {len(group.names) - 12} more")
    return "<br>".join([f"<b>{plain(group.verdict)}</b>", *names, "", plain(group.reason)])


def _write_rows(figure: go.Figure, rows: pd.DataFrame, *, theme: Theme) -> None:
    for index, row in enumerate(rows.to_dict("records")):
        tied = row["group"] >= 0
        name = plain(shorten_middle(row["label"], NAME_LENGTH))
        color = _color(row["group"], theme, alone=theme.ink)
        figure.add_annotation(
            x=BOX_LEFT + 1,
            y=_row_y(index) - 8,
            text=f"<b>{name}</b>" if tied else name,
            font={"family": MONO, "size": 12, "color": color},
            align="left",
            showarrow=False,
            xanchor="left",
        )
        figure.add_annotation(
            x=BOX_LEFT + 1,
            y=_row_y(index) + 7,
            text=f"{_row_detail(row)} · {count_text(row['parameters'])}",
            font={"size": 11, "color": theme.muted},
            align="left",
            showarrow=False,
            xanchor="left",
        )


def _write_nodes(
    figure: go.Figure,
    groups: Sequence[SharedGroup],
    heights: dict[int, float],
    *,
    theme: Theme,
) -> None:
    for group, y in heights.items():
        figure.add_annotation(
            x=NODE_TEXT,
            y=y,
            text=_node_text(groups[group]),
            font={"size": 12, "color": theme.ink},
            align="left",
            showarrow=False,
            xanchor="left",
        )


def _write_nothing_shared(figure: go.Figure, count: int, *, theme: Theme) -> None:
    figure.add_annotation(
        x=(BOX_RIGHT + 100) / 2,
        y=max(count, 1) * PITCH / 2,
        text="<b>nothing is shared</b><br>each name has<br>a tensor of its own",
        font={"size": 13, "color": theme.muted},
        showarrow=False,
    )


def _node_text(group: SharedGroup) -> str:
    verdict = VERDICTS[group.verdict]
    count = len(group.names)
    sizes = {
        "n": count,
        "size": bytes_text(group.nbytes),
        "all": bytes_text(group.nbytes * count),
        "rest": bytes_text(group.nbytes * (count - 1)),
    }
    parameters = count_text(int(np.prod(group.shape, dtype=np.int64)))
    heading = verdict.heading.format(**sizes)
    shape = f"{shape_text(group.shape)} · {parameters}"
    return f"<b>{heading}</b><br>{shape}<br>{verdict.storage.format(**sizes)}"
