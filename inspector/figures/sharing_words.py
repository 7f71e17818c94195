"""What the sharing graph says, and where its rows and storage nodes stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from inspector.figures.frames import column
from inspector.figures.text import bytes_text, count_text, plain, plural, shape_text
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


def group_letter(group: int) -> str:
    """Name a group A, B, ..., Z, AA, AB, ..., so that colour is not the only cue."""
    letters = ""
    while group >= 0:
        letters = chr(ord("A") + group % 26) + letters
        group = group // 26 - 1
    return letters


def row_y(index: int) -> float:
    """Place the middle of a row, in pixels from the top."""
    return (index + 0.5) * PITCH


def node_heights(rows: pd.DataFrame) -> dict[int, float]:
    """Place each storage node beside the middle of its rows, without overlaps."""
    members: dict[int, list[float]] = {}
    for index, group in enumerate(column(rows, "group")):
        if group >= 0:
            members.setdefault(group, []).append(row_y(index))
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


def row_hovers(rows: pd.DataFrame, tensors: pd.DataFrame | None) -> list[str]:
    """Say all that is known of each row."""
    known = {} if tensors is None else tensors.set_index("name").to_dict("index")
    hovers = []
    for row in rows.to_dict("records"):
        lines = [f"<b>{plain(row['label'])}</b>", row_detail(row)]
        lines.append(f"{row['parameters']:,} parameters · {bytes_text(row['nbytes'])}")
        tensor = known.get(row["label"])
        if tensor is not None:
            file = plain(tensor["file"]) if tensor["file"] else "under another name"
            lines.append(f"{plain(tensor['dtype'])} · in the file: {file}")
        hovers.append("<br>".join(lines))
    return hovers


def row_detail(row: dict) -> str:
    """Say a row's shape, or how many tensors it stands for."""
    return plain(row["shape"]) if row["shape"] else plural(row["tensors"], "tensor")


def node_text(group: SharedGroup) -> str:
    """Say what is stored for a group, in three or four lines."""
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


def node_hover(group: SharedGroup) -> str:
    """List a group's names with the reason for its verdict."""
    names = [plain(name) for name in group.names[:12]]
    if len(group.names) > 12:
        names.append(f"and {len(group.names) - 12} more")
    return "<br>".join([f"<b>{plain(group.verdict)}</b>", *names, "", plain(group.reason)])
