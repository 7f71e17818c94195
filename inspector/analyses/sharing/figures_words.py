"""What the sharing graph says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import pandas as pd

from inspector.analyses.sharing.figures_layout import Node, NodePart
from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.plotting.frames import column, columns
from inspector.text import bytes_text, count_text, plain, plural, shape_text, shorten_name

WIDTH = 330.0  # pixels inside a row's box in a figure of 600: what its two texts must share
LINE = 64  # characters of a line of text: Plotly breaks none
NAME_PIXELS, DETAIL_PIXELS = 7.25, 5.5  # of one character


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one verdict of `SharedGroup` is drawn."""

    dash: str
    symbol: str


VERDICTS = {
    "tied": Verdict("solid", "circle"),
    "equal copies": Verdict("dash", "square"),
    "diverged": Verdict("dot", "diamond"),
    "declared only": Verdict("dashdot", "hexagon"),
    "alias only": Verdict("longdash", "octagon"),
    "not compared": Verdict("longdashdot", "pentagon"),
}
SIGNS = {"equal copies": "=", "different numbers": "≠"}  # by what the file holds


def group_letter(group: int) -> str:
    """Name a group A, B, ..., Z, AA, AB, ..., so that color is not the only cue."""
    letters = ""
    while group >= 0:
        letters = chr(ord("A") + group % 26) + letters
        group = group // 26 - 1
    return letters


def sharing_subtitle(sharing: Sharing) -> str:
    """Count names against tensors, and listed against unique parameters."""
    named = [group for group, kind in columns(sharing.tensors, "group", "kind") if kind == "parameter"]
    one = {group for group in named if group >= 0 and sharing.groups[group].in_memory}
    apart = len(named) - sum(group in one for group in named)
    return (
        f"{plural(len(named), 'parameter name')} → {plural(apart + len(one), 'tensor')} in memory"
        f" · {count_text(sharing.unique_parameters)} unique of "
        f"{count_text(sharing.listed_parameters)} named parameters"
    )


def row_texts(row: dict[str, Any], *, room: float | None = None) -> tuple[str, str]:
    """Name a row, and say its size.

    Args:
        room: Pixels of the name alone; None: name and size stand beside each other.
    """
    detail = row_detail(row)
    room = (WIDTH - DETAIL_PIXELS * len(detail) if room is None else room) - 12
    return plain(shorten_name(row["label"], int(room / NAME_PIXELS))), plain(detail)


def row_detail(row: dict[str, Any]) -> str:
    """Say what a row holds; the shape of what is shared stands at its storage."""
    count = count_text(row["parameters"])
    if row["group"] >= 0:
        return count if row["tensors"] == 1 else f"{plural(row['tensors'], 'name')} · {count}"
    if row["tensors"] == 1:
        return f"{row['shape']} · {count}" if "×" in row["shape"] else count
    return f"{plural(row['tensors'], 'tensor')} · {count}"


def row_hovers(rows: pd.DataFrame, tensors: pd.DataFrame) -> list[str]:
    """Say all that is known of each row."""
    known: dict[Any, pd.DataFrame] = dict(list(tensors.groupby("row", sort=False)))
    return [
        "<br>".join([f"<b>{plain(row['label'])}</b>", *_lines(row, known[index])])
        for index, row in enumerate(rows.to_dict("records"))
    ]


def _lines(row: dict[str, Any], tensors: pd.DataFrame) -> list[str]:
    size = f"{row['parameters']:,} parameters · {bytes_text(row['nbytes'])}"
    shape = plain(row["shape"])
    if row["tensors"] > 1:
        each = f", each {shape}" if shape else ""
        lines = [f"{plural(row['tensors'], 'name')}{each}", size]
        groups = set(column(tensors, "group")) - {-1}
        if row["group"] < 0 and groups:
            lines.append(f"includes names of {plural(len(groups), 'shared group')}")
        return [*lines, _several(tensors)]
    tensor = tensors.to_dict("records")[0]
    return [f"{shape} · {plain(tensor['dtype'])}", size, *_places(tensor)]


def _several(tensors: pd.DataFrame) -> str:
    dtypes = ", ".join(sorted(set(column(tensors, "dtype"))))
    files = sorted(set(column(tensors, "file")) - {""})
    named = files[0] if len(files) == 1 else plural(len(files), "file")
    return plain(f"{dtypes} · in {named}" if files else dtypes)


def _places(tensor: dict[str, Any]) -> list[str]:
    """Where one tensor lies in memory and in the file."""
    return [
        f"in memory: storage {tensor['storage']}, offset {tensor['offset']:,} B, stride ({plain(tensor['stride'])})",
        f"in the file: {plain(file_place(tensor))}",
    ]


def file_place(tensor: dict[str, Any]) -> str:
    """Say in which file a tensor's bytes are, and from which one on."""
    if not tensor["file"]:
        return "not under this name"
    offset = tensor["file_offset"]
    return f"{tensor['file']}, from byte {offset:,}" if offset >= 0 else tensor["file"]


def tied_text(node: Node, groups: Sequence[SharedGroup]) -> str:
    """Say what is stored for names that are one tensor, in three lines."""
    first, of = groups[node.group], [groups[group] for group in node.groups]
    unique = sum(group.unique_nbytes for group in of)
    saved = sum(group.listed_nbytes for group in of) - unique
    parameters = count_text(sum(group.unique_parameters for group in of))
    names = len(first.names)
    if len(of) > 1:
        each = f"{names} names" if {len(group.names) for group in of} == {names} else "many names"
        heading, shape = f"{len(of)} tensors × {each}", parameters
    else:
        heading = f"one {'tensor' if _alike(first) else 'block'}, {names} names"
        shape = f"{shape_text(first.shape)} · {parameters}"
    return f"<b>{heading}</b><br>{shape}<br>{bytes_text(unique)} · saves {bytes_text(saved)}"


def apart_texts(node: Node, groups: Sequence[SharedGroup]) -> tuple[str, str]:
    """Head and foot of what is not one tensor: the verdict, and what tying would save."""
    of = [groups[group] for group in node.groups]
    verdict = groups[node.group].verdict
    heading = f"<b>{verdict}</b>" if len(of) == 1 else f"<b>{len(of)} × {verdict}</b>"
    if verdict == "equal copies":
        spare = sum(group.unique_nbytes - group.nbytes for group in of)
        return heading, f"tying saves {bytes_text(spare)}"
    return heading, "a tie is declared" if of[0].declared else "no tie is declared"


def part_text(part: NodePart, rows: Sequence[dict[str, Any]], *, rest: bool, group: SharedGroup) -> str:
    """Say which tensor a part is; `rest`: it stands for all that have no box of their own."""
    if rest:
        return f"… {plural(len(part.rows), 'more tensor')}"
    row = rows[part.rows[0]]
    if row["tensors"] > 1:
        return f"{plural(row['tensors'], 'tensor')} · {bytes_text(row['nbytes'])}"
    return f"{plain(row['shape'] or shape_text(group.shape))} · {bytes_text(row['nbytes'])}"


def sign_between(group: SharedGroup) -> str:
    """Say how tensors that are not one compare; "|" where nobody can tell."""
    known = {"equal copies": "=", "diverged": "≠"}
    return known.get(group.verdict) or SIGNS.get(group.file_relation, "|")


def node_hover(node: Node, groups: Sequence[SharedGroup]) -> str:
    """List a node's names with the reason for its verdict."""
    first = groups[node.group]
    names = [plain(name) for name in first.names[:12]]
    if len(first.names) > 12:
        names.append(f"and {len(first.names) - 12} more")
    if len(node.groups) > 1:
        names.append(f"and {plural(len(node.groups) - 1, 'more group')} like it")
    reason = "<br>".join(wrap(plain(first.reason), LINE, break_long_words=False, break_on_hyphens=False))
    return "<br>".join([f"<b>{plain(first.verdict)}</b>", *names, "", reason])


def _alike(group: SharedGroup) -> bool:
    """Whether all names are the whole tensor, and none a view of a part."""
    return len({(m.offset, m.shape) for m in group.members}) <= 1
