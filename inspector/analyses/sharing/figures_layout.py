"""Where the rows and the storage nodes of the sharing graph stand."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from inspector.analyses.sharing.result import SharedGroup
from inspector.plotting.frames import column, columns

PITCH, BOX = 36.0, 29.0  # pixels from row to row, and of a row's box
BOX_RIGHT = 60.0  # per cent of the width; rows begin at 0
NODE_LEFT, NODE_RIGHT = 73.0, 100.0
TIED = 62.0  # pixels: the box of one tensor with its three lines of text
PART, BETWEEN = 25.0, 17.0  # the box of one of several tensors, and the gap that holds = or ≠
LINE = 19.0  # a line of text above or below such boxes
APART = 14.0  # between storage nodes
PARTS = 4  # of tensors drawn for a group that is not one tensor; the last one stands for the rest


@dataclass(frozen=True, slots=True)
class NodePart:
    """One tensor in memory, or what several have in common; the rows that end there."""

    rows: tuple[int, ...]
    y: float  # of its middle, pixels from the top
    height: float


@dataclass(frozen=True, slots=True)
class Node:
    """What is stored for one group of names, or for groups that were folded together."""

    group: int  # the first of `groups`; decides color and letter
    groups: tuple[int, ...]
    rows: tuple[int, ...]
    tied: bool
    top: float
    height: float
    parts: tuple[NodePart, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """The line from a row to its tensor."""

    row: int
    group: int
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SharingLayout:
    """What is drawn where: pixels from the top, and across in the units of `width`."""

    ys: tuple[float, ...]  # middles of the rows
    box: float  # height of a row's box
    right: float  # where rows end; they begin at 0
    nodes: tuple[Node, ...]
    node_left: float
    node_right: float
    port: float  # where curves end
    curves: tuple[Curve, ...]  # by row
    aside: tuple[float, float]  # where a text stands if there are no nodes
    width: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Shared:
    """The rows of one node, by the tensor that they are."""

    group: int
    rows: tuple[int, ...]
    tensors: tuple[tuple[int, ...], ...]

    @property
    def height(self) -> float:
        """Pixels of its boxes and of the text beside them."""
        if len(self.tensors) == 1:
            return TIED
        return 2 * LINE + len(self.tensors) * PART + (len(self.tensors) - 1) * BETWEEN

    def parts(self, top: float) -> tuple[NodePart, ...]:
        """Its boxes."""
        if len(self.tensors) == 1:
            return (NodePart(self.tensors[0], top + TIED / 2, TIED),)
        first = top + LINE + PART / 2
        return tuple(NodePart(rows, first + index * (PART + BETWEEN), PART) for index, rows in enumerate(self.tensors))


def arrange(rows: pd.DataFrame, groups: Sequence[SharedGroup], tensors: pd.DataFrame) -> SharingLayout:
    """Place each storage node beside the middle of its rows, without overlaps.

    Args:
        rows: `Sharing.rows`: label, group.
        groups: `Sharing.groups`.
        tensors: `Sharing.tensors`: row, group.

    Returns:
        Nodes from top to bottom; across in per cent of the width.
    """
    ys = tuple((index + 0.5) * PITCH for index in range(len(rows)))
    wanted = [(sum(ys[row] for row in shared.rows) / len(shared.rows), shared) for shared in gather(rows, groups)]
    wanted.sort(key=lambda each: (each[0], each[1].group))
    tops = _spread([(middle - shared.height / 2, shared.height) for middle, shared in wanted], len(rows) * PITCH)
    nodes = nodes_at([(shared, top) for (_, shared), top in zip(wanted, tops, strict=True)], groups, tensors)
    bottom = max([max(len(rows), 2) * PITCH, *(node.top + node.height for node in nodes)])
    return SharingLayout(
        ys=ys,
        box=BOX,
        right=BOX_RIGHT,
        nodes=nodes,
        node_left=NODE_LEFT,
        node_right=NODE_RIGHT,
        port=NODE_LEFT,
        curves=_curves(ys, nodes),
        aside=(BOX_RIGHT, bottom / 2),
        width=100.0,
        bottom=bottom,
    )


def gather(rows: pd.DataFrame, groups: Sequence[SharedGroup]) -> list[Shared]:
    """Find the rows of each node, by the tensor that they are.

    A group that is tied is one box. Any other is a box a tensor, so that no drawn line says that
    memory is shared where it is not.
    """
    members: dict[int, list[int]] = {}
    for index, group in enumerate(column(rows, "group")):
        if group >= 0:
            members.setdefault(group, []).append(index)
    return [
        Shared(group, tuple(places), tuple(map(tuple, _tensors(rows, places, groups[group]))))
        for group, places in members.items()
    ]


def nodes_at(
    placed: Sequence[tuple[Shared, float]], groups: Sequence[SharedGroup], tensors: pd.DataFrame
) -> tuple[Node, ...]:
    """Make a node of each, from its top."""
    held = groups_of_rows(tensors)
    return tuple(
        Node(
            group=shared.group,
            groups=tuple(sorted({each for row in shared.rows for each in held[row]})),
            rows=shared.rows,
            tied=groups[shared.group].in_memory,
            top=top,
            height=shared.height,
            parts=shared.parts(top),
        )
        for shared, top in placed
    )


def _curves(ys: Sequence[float], nodes: Sequence[Node]) -> tuple[Curve, ...]:
    step = np.linspace(0.0, 1.0, 33)
    across = tuple((BOX_RIGHT + (NODE_LEFT - BOX_RIGHT) * step).tolist())
    ease = step * step * (3 - 2 * step)  # level at both ends
    ends = sorted((row, part.y, node.group) for node in nodes for part in node.parts for row in part.rows)
    return tuple(Curve(row, group, across, tuple((ys[row] + (y - ys[row]) * ease).tolist())) for row, y, group in ends)


def groups_of_rows(tensors: pd.DataFrame) -> dict[int, tuple[int, ...]]:
    """Find the groups that each row of the graph holds names of; rows without any are left out."""
    found: dict[int, set[int]] = {}
    for row, group in columns(tensors, "row", "group"):
        if group >= 0:
            found.setdefault(row, set()).add(group)
    return {row: tuple(sorted(groups)) for row, groups in found.items()}


def _tensors(rows: pd.DataFrame, places: Sequence[int], group: SharedGroup) -> list[list[int]]:
    """Rows of one node by the tensor that they are: all of them if it is tied."""
    if group.in_memory:
        return [list(places)]
    where = {member.name: (member.storage, member.offset) for member in group.members}
    labels = column(rows, "label")
    found: dict[Hashable, list[int]] = {}
    for place in places:
        found.setdefault(where.get(labels[place], labels[place]), []).append(place)
    apart = list(found.values())
    if len(apart) <= PARTS:
        return apart
    return [*apart[: PARTS - 1], [place for rest in apart[PARTS - 1 :] for place in rest]]


def _spread(wanted: Sequence[tuple[float, float]], below: float) -> list[float]:
    """Push boxes apart, downward first and then up from the lower edge.

    Args:
        wanted: (top, height) of each, in order.
        below: Height of the figure's rows; the boxes take more where they must.

    Returns:
        Their tops, at least 0.
    """
    room = sum(height for _, height in wanted) + APART * max(len(wanted) - 1, 0)
    below = max(below, room)
    tops: list[float] = []
    reached = 0.0
    for top, height in wanted:
        tops.append(max(top, reached))
        reached = tops[-1] + height + APART
    for index in range(len(wanted) - 1, -1, -1):
        tops[index] = min(tops[index], below - wanted[index][1])
        below = tops[index] - APART
    return tops
