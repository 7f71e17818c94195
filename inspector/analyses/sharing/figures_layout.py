"""Where the rows and the storage nodes of the sharing graph stand."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from inspector.analyses.sharing.result import SharedGroup
from inspector.plotting.frames import column, columns

PITCH, BOX = 36.0, 29.0  # pixels from row to row, and of a row's box
BOX_LEFT, BOX_RIGHT = 0.0, 60.0  # per cent of the width
NODE_LEFT, NODE_RIGHT = 73.0, 100.0
TIED = 62.0  # pixels: the box of one tensor with its three lines of text
PART, BETWEEN = 25.0, 17.0  # the box of one of several tensors, and the gap that holds = or ≠
LINE = 19.0  # a line of text above or below such boxes
APART = 14.0  # between storage nodes
PARTS = 4  # of tensors drawn for a group that is not one tensor; the last one stands for the rest


@dataclass(frozen=True, slots=True)
class Part:
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
    parts: tuple[Part, ...]


def row_y(index: int) -> float:
    """Place the middle of a row, in pixels from the top."""
    return (index + 0.5) * PITCH


def place_nodes(rows: pd.DataFrame, groups: Sequence[SharedGroup], tensors: pd.DataFrame) -> list[Node]:
    """Place each storage node beside the middle of its rows, without overlaps.

    A group that is tied is one box. Any other is a box a tensor, so that no drawn line says that
    memory is shared where it is not.

    Args:
        rows: `Sharing.rows`: label, group.
        groups: `Sharing.groups`.
        tensors: `Sharing.tensors`: row, group.

    Returns:
        Nodes from top to bottom.
    """
    members: dict[int, list[int]] = {}
    for index, group in enumerate(column(rows, "group")):
        if group >= 0:
            members.setdefault(group, []).append(index)
    ends = {group: _tensors(rows, places, groups[group]) for group, places in members.items()}
    heights = {group: _height(ends[group]) for group in members}
    wanted = {g: sum(map(row_y, places)) / len(places) for g, places in members.items()}
    order = sorted(wanted, key=lambda group: (wanted[group], group))
    tops = _spread([(wanted[g] - heights[g] / 2, heights[g]) for g in order], len(rows) * PITCH)
    held = groups_of_rows(tensors)
    return [
        Node(
            group=group,
            groups=tuple(sorted({each for place in members[group] for each in held[place]})),
            rows=tuple(members[group]),
            tied=groups[group].in_memory,
            top=top,
            height=heights[group],
            parts=_parts(ends[group], top),
        )
        for group, top in zip(order, tops, strict=True)
    ]


def bottom(rows: pd.DataFrame, nodes: Iterable[Node]) -> float:
    """Where the lowest row or node ends, in pixels from the top."""
    return max([max(len(rows), 2) * PITCH, *(node.top + node.height for node in nodes)])


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


def _height(tensors: Sequence[Sequence[int]]) -> float:
    if len(tensors) == 1:
        return TIED
    return 2 * LINE + len(tensors) * PART + (len(tensors) - 1) * BETWEEN


def _parts(tensors: Sequence[Sequence[int]], top: float) -> tuple[Part, ...]:
    if len(tensors) == 1:
        return (Part(tuple(tensors[0]), top + TIED / 2, TIED),)
    first = top + LINE + PART / 2
    return tuple(Part(tuple(rows), first + index * (PART + BETWEEN), PART) for index, rows in enumerate(tensors))


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
