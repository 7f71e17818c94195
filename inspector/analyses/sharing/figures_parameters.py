"""Where the parameters are: the tree of names by size."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pandas as pd
import plotly.graph_objects as go

from inspector.analyses.sharing.result import SharedGroup
from inspector.names import FOLDED, group_names
from inspector.plotting import theme as look
from inspector.plotting.frames import columns
from inspector.plotting.theme import LIGHT, Theme
from inspector.text import count_text, percent_text, plain, plural, shorten_middle

MOST = 400  # boxes: the browser draws them at once, and smaller ones nobody sees
CHUNKS = 40  # of one module's children, where there are more: longer lists open in steps
LEVELS = 4  # shown at once; a click opens what lies deeper
NEARLY_ALL = 0.9  # a module with this share of its parent's parameters says nothing by a color
NARROW = 0.1  # a box with a smaller share holds its name alone
SMALLEST = 11  # pixels of a letter; a box that cannot hold it has no text
ROOT = "all parameters"


@dataclass(slots=True)
class _NameNode:
    name: str = ""  # full name of the module or parameter
    label: str = ""  # the part of it below its parent
    parameters: int = 0
    names: int = 0
    children: dict[str, _NameNode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Box:
    name: str  # full name of the module or parameter
    parent: str
    label: str
    parameters: int
    branch: int  # decides the color; -1 for what holds nearly all parameters
    closed: int  # tensors of a module that is not opened, or of a pattern; 0 for every other


def parameter_icicle(
    tensors: pd.DataFrame, groups: Sequence[SharedGroup] = (), *, name: str, theme: Theme = LIGHT
) -> go.Figure:
    """Draw the modules as boxes whose width is their number of parameters.

    Args:
        tensors: `Sharing.tensors`: name, parameters, group (-1: not shared), in the model's order.
        groups: `Sharing.groups`. Of the names that are one tensor, the first of the largest counts
            and the others do not appear; copies count each.
        name: Of the checkpoint.

    Returns:
        A figure whose ids are the full names of modules and parameters, below `ROOT`. The values
        of its leaves add up to the unique parameters. Many names are drawn by pattern,
        "layers.[0–11].bias". At most MOST boxes: the smallest modules are not opened.
    """
    tree = _tree(_folded(list(_unique(tensors, groups))))
    boxes = list(_boxes(tree))
    total = max(tree.parameters, 1)
    colors = [_color(box.branch, theme) for box in boxes]
    figure = look.figure(
        f"Parameters of {name}",
        f"{tree.parameters:,} parameters, each shared tensor counted once",
        theme=theme,
        height=430,
        uniformtext={"minsize": SMALLEST, "mode": "hide"},
    )
    figure.add_trace(
        go.Icicle(
            ids=[plain(box.name) for box in boxes],
            parents=[plain(box.parent) for box in boxes],
            labels=[plain(box.label) for box in boxes],
            values=[box.parameters for box in boxes],
            branchvalues="total",
            sort=False,
            maxdepth=LEVELS,
            tiling={"orientation": "v", "pad": 2},
            text=[_caption(box, total) for box in boxes],
            textinfo="text",
            hovertext=[_hover(box, total) for box in boxes],
            hoverinfo="text",
            marker={"colors": colors, "line": {"width": 1, "color": theme.page}},
            leaf={"opacity": 1},
            textfont={"size": 13, "color": theme.ink},
            pathbar={"visible": True, "thickness": 24, "textfont": {"size": 12}},
        )
    )
    return figure


def _unique(tensors: pd.DataFrame, groups: Sequence[SharedGroup]) -> Iterator[tuple[str, int]]:
    """Names with the parameters that each adds to those before it."""
    named = columns(tensors, "name", "parameters", "group", "kind")
    rows = [row for *row, kind in named if kind == "parameter"]
    largest: dict[int, tuple[int, str]] = {}
    for name, parameters, group in rows:
        if group >= 0 and (group not in largest or parameters > largest[group][0]):
            largest[group] = (parameters, name)
    for name, parameters, group in rows:
        if group < 0 or not groups[group].in_memory:
            yield name, parameters
        elif largest[group][1] == name:
            yield name, groups[group].unique_parameters


def _folded(unique: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int, int]]:
    """Names with their parameters and how many names each stands for: many by pattern, few as they are."""
    if len(unique) <= FOLDED:
        yield from ((name, parameters, 1) for name, parameters in unique)
        return
    for group in group_names([name for name, _ in unique]):
        yield group.label, sum(unique[place][1] for place in group.places), len(group.places)


def _tree(unique: Iterable[tuple[str, int, int]]) -> _NameNode:
    root = _NameNode()
    for name, parameters, names in unique:
        root.parameters += parameters
        node = root
        for part in name.split("."):
            path = f"{node.name}.{part}" if node.name else part
            node = node.children.setdefault(part, _NameNode(path, part))
            node.parameters += parameters
            node.names += names
    _chunk(root)
    return root


def _chunk(root: _NameNode) -> None:
    """Put runs of children together where a module has more than can be told apart."""
    todo = [root]
    while todo:
        node = todo.pop()
        children = list(node.children.values())
        if len(children) > CHUNKS:
            size = -(-len(children) // CHUNKS)
            runs = (children[start : start + size] for start in range(0, len(children), size))
            node.children = {run.name: run for run in map(_run, runs)}
        todo.extend(node.children.values())


def _run(children: Sequence[_NameNode]) -> _NameNode:
    first, last = children[0], children[-1]
    return _NameNode(
        name=f"{first.name} … {last.label}",
        label=f"{first.label} … {last.label}",
        parameters=sum(child.parameters for child in children),
        names=sum(child.names for child in children),
        children={child.label: child for child in children},
    )


def _boxes(root: _NameNode) -> Iterator[_Box]:
    """Open modules, the largest first, joining one that has one child with that child."""
    opened = {id(node) for node in _largest(root)}
    yield _Box(ROOT, "", ROOT, root.parameters, -1, 0)
    branches = itertools.count()
    todo = deque((ROOT, node, -1) for node in root.children.values())
    while todo:
        parent, node, branch = todo.popleft()
        label = node.label
        while len(node.children) == 1:
            node = next(iter(node.children.values()))
            label = f"{label}.{node.label}"
        if branch < 0 and node.parameters < NEARLY_ALL * root.parameters:
            branch = next(branches)
        closed = bool(node.children) and id(node) not in opened
        folded = node.names > 1 and not node.children
        yield _Box(node.name, parent, label, node.parameters, branch, node.names if closed or folded else 0)
        if not closed:
            todo.extend((node.name, child, branch) for child in node.children.values())


def _largest(root: _NameNode) -> Iterator[_NameNode]:
    """Modules to open, so that there are at most MOST boxes; the root always is."""
    count = itertools.count()  # settles a draw: nodes have no order
    heap = [(-root.parameters, next(count), root)]
    boxes = 1
    while heap:
        _, _, node = heapq.heappop(heap)
        while len(node.children) == 1 and node is not root:
            node = next(iter(node.children.values()))
        if not node.children or (boxes + len(node.children) > MOST and node is not root):
            continue
        boxes += len(node.children)
        yield node
        for child in node.children.values():
            heapq.heappush(heap, (-child.parameters, next(count), child))


def _color(branch: int, theme: Theme) -> str:
    if branch < 0:
        return theme.surface
    return look.mix(theme.groups[branch % len(theme.groups)], theme.page, 0.3)


def _caption(box: _Box, total: int) -> str:
    name = plain(shorten_middle(box.label, 26))
    if box.parameters < NARROW * total:
        return name
    return f"{name}<br>{count_text(box.parameters)} · {_share(box, total)}"


def _hover(box: _Box, total: int) -> str:
    lines = [f"<b>{plain(box.name)}</b>", f"{box.parameters:,} parameters", _share(box, total)]
    if box.closed:
        lines.append(f"{plural(box.closed, 'tensor')}, not drawn individually")
    return "<br>".join(lines)


def _share(box: _Box, total: int) -> str:
    return plain(percent_text(box.parameters / total))
