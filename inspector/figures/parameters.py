"""Where the parameters are: the tree of names by size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd
import plotly.graph_objects as go

from inspector.figures import theme as look
from inspector.figures.text import count_text, percent_text, plain, shorten_middle
from inspector.figures.theme import LIGHT, Theme

LEVELS = 4  # shown at once; a click opens what lies deeper
NEARLY_ALL = 0.9  # a module with this share of its parent's parameters says nothing by a colour
NARROW = 0.1  # a box with a smaller share holds its name alone
ROOT = "all parameters"


@dataclass(slots=True)
class _Node:
    parameters: int = 0
    children: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Box:
    name: str  # full name of the module or parameter
    parent: str
    label: str
    parameters: int
    branch: int  # decides the colour; -1 for what holds nearly all parameters


def parameter_icicle(tensors: pd.DataFrame, *, title: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw the modules as boxes whose width is their number of parameters.

    Args:
        tensors: `Sharing.tensors`: name, parameters, group (-1: not shared), in execution order.
            Of the names that are one tensor, the first one counts and the others do not appear.
        title: Of the figure, with the checkpoint's name.
        theme: Colours.

    Returns:
        A figure whose ids are the full names of modules and parameters, below `ROOT`.
    """
    tree = _tree(tensors)
    boxes = list(_boxes(tree))
    total = max(tree.parameters, 1)
    colors = [_color(box.branch, theme) for box in boxes]
    figure = go.Figure(
        layout=look.layout(
            title=plain(title),
            subtitle=f"{tree.parameters:,} parameters, each shared tensor counted once",
            theme=theme,
            height=430,
        )
    )
    figure.add_trace(
        go.Icicle(
            ids=[box.name for box in boxes],
            parents=[box.parent for box in boxes],
            labels=[plain(box.label) for box in boxes],
            values=[box.parameters for box in boxes],
            branchvalues="total",
            sort=False,
            maxdepth=LEVELS,
            tiling={"orientation": "v", "pad": 2},
            text=[_caption(box, total) for box in boxes],
            textinfo="text",
            hovertext=[
                f"<b>{plain(b.name)}</b><br>{b.parameters:,} parameters<br>{_share(b, total)}"
                for b in boxes
            ],
            hoverinfo="text",
            marker={"colors": colors, "line": {"width": 1, "color": theme.page}},
            leaf={"opacity": 1},
            textfont={"size": 13, "color": theme.ink},
            pathbar={"visible": True, "thickness": 24, "textfont": {"size": 12}},
        )
    )
    return figure


def _tree(tensors: pd.DataFrame) -> _Node:
    root = _Node()
    seen: set[int] = set()
    columns = (tensors[column] for column in ("name", "parameters", "group"))
    for name, parameters, group in zip(*columns, strict=True):
        if group in seen:
            continue
        if group >= 0:
            seen.add(group)
        root.parameters += int(parameters)
        node = root
        for part in name.split("."):
            node = node.children.setdefault(part, _Node())
            node.parameters += int(parameters)
    return root


def _boxes(root: _Node) -> Iterator[_Box]:
    """Walk the tree in order, joining a module that has one child with that child."""
    yield _Box(ROOT, "", ROOT, root.parameters, -1)
    branches = itertools.count()
    todo = [(part, ROOT, part, node, -1) for part, node in root.children.items()]
    while todo:
        name, parent, label, node, branch = todo.pop(0)
        while len(node.children) == 1:
            part, node = next(iter(node.children.items()))
            name, label = f"{name}.{part}", f"{label}.{part}"
        if branch < 0 and node.parameters < NEARLY_ALL * root.parameters:
            branch = next(branches)
        yield _Box(name, parent, label, node.parameters, branch)
        todo.extend(
            (f"{name}.{part}", name, part, child, branch) for part, child in node.children.items()
        )


def _color(branch: int, theme: Theme) -> str:
    if branch < 0:
        return theme.surface
    return look.mix(theme.groups[branch % len(theme.groups)], theme.page, 0.3)


def _caption(box: _Box, total: int) -> str:
    name = plain(shorten_middle(box.label, 26))
    if box.parameters < NARROW * total:
        return name
    return f"{name}<br>{count_text(box.parameters)} · {_share(box, total)}"


def _share(box: _Box, total: int) -> str:
    return plain(percent_text(box.parameters / total))
