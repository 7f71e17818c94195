"""Where the rows and the storage nodes of the sharing graph stand on a phone: each node below its last row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from inspector.analyses.sharing.figures_layout import APART, Curve, Node, Shared, SharingLayout, gather, nodes_at
from inspector.analyses.sharing.result import SharedGroup

WIDTH = 320.0  # pixels for which texts are fitted
PITCH, BOX = 46.0, 39.0  # pixels from row to row, and of a row's box, which holds two lines
INDENT = 26.0  # of a storage node
MARGIN, LANE = 12.0, 11.0  # right of the rows: for the letters at their ends, and of each line
LANES = 66.0  # of all lines at most
GAP = 3.0  # between a row's box and a node besides
TURN = 5.0  # radius of a line's corner
NOTHING = 64.0  # height of the text that says that nothing is shared


def arrange_narrow(rows: pd.DataFrame, groups: Sequence[SharedGroup], tensors: pd.DataFrame) -> SharingLayout:
    """Place each storage node below the last of its rows, joined by a line at the right.

    Args:
        rows: `Sharing.rows`: label, group.
        groups: `Sharing.groups`.
        tensors: `Sharing.tensors`: row, group.

    Returns:
        Nodes from top to bottom; across in pixels.
    """
    below: dict[int, list[Shared]] = {}
    for shared in gather(rows, groups):
        below.setdefault(shared.rows[-1], []).append(shared)
    ys: list[float] = []
    placed: list[tuple[Shared, float]] = []
    reached = 0.0
    for row in range(len(rows)):
        ys.append(reached + PITCH / 2)
        reached += PITCH
        for shared in below.get(row, []):
            placed.append((shared, reached + GAP))
            reached += shared.height + APART
    nodes = nodes_at(placed, groups, tensors)
    lanes = _lanes(ys, nodes)
    room = min(LANE * (max(lanes, default=-1) + 1), LANES)
    right = WIDTH - MARGIN - room
    step = room / (max(lanes, default=0) + 1)
    return SharingLayout(
        ys=tuple(ys),
        box=BOX,
        right=right,
        nodes=nodes,
        node_left=INDENT,
        node_right=right,
        port=right,
        curves=_curves(ys, nodes, [right + MARGIN + lane * step for lane in lanes], right),
        aside=(0.0, reached + NOTHING / 2),
        width=WIDTH,
        bottom=reached if nodes else reached + NOTHING,
    )


def _lanes(ys: Sequence[float], nodes: Sequence[Node]) -> list[int]:
    """A lane for the line of each box, so that no two lines lie over each other."""
    spans = [(ys[part.rows[0]], part.y) for node in nodes for part in node.parts]
    lanes = [0] * len(spans)
    reached: list[float] = []  # of each lane
    for place in sorted(range(len(spans)), key=lambda place: spans[place]):
        top, end = spans[place]
        free = next((lane for lane, low in enumerate(reached) if low < top), len(reached))
        reached[free:] = [end, *reached[free + 1 :]]
        lanes[place] = free
    return lanes


def _curves(ys: Sequence[float], nodes: Sequence[Node], lanes: Sequence[float], right: float) -> tuple[Curve, ...]:
    """From the first row of each box down to the box, and from each other row to that line."""
    found: list[Curve] = []
    parts = [(node.group, part) for node in nodes for part in node.parts]
    turn = np.linspace(0.0, np.pi / 2, 7)
    for (group, part), lane in zip(parts, lanes, strict=True):
        first, *rest = part.rows
        x = lane - TURN * (1 - np.sin(turn))
        sag = TURN * (1 - np.cos(turn))
        across = (right, *x.tolist(), *x.tolist()[::-1], right)
        down = (ys[first], *(ys[first] + sag).tolist(), *(part.y - sag).tolist()[::-1], part.y)
        found.append(Curve(first, group, across, down))
        found += [Curve(row, group, (right, lane), (ys[row], ys[row])) for row in rest]
    return tuple(sorted(found, key=lambda curve: curve.row))
