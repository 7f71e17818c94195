"""Sort tensors by layer and by kind, from their names alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pandas as pd

from inspector.analyses.compare.compute_parts import Sums
from inspector.analyses.compare.result import EQUAL

LISTED = re.compile(r"\.(\d{1,9})(?=\.)|^(\d{1,9})(?=\.)")  # a module's place in a list
EXPERT = re.compile(r"(experts)\.\d{1,9}(?=\.)")
COLUMNS = ("layer", "number", "kind", "tensors", "unequal", "relative_change", "cosine", "max_abs")


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where a tensor stands in the model."""

    stack: str  # the list of layers that it is in, as a path; "" outside of any
    number: int  # of its layer; -1 outside
    kind: str  # its name within the layer, the experts of a mixture taken together


@dataclass(slots=True)
class _Cell:
    tensors: int = 0
    unequal: int = 0
    sums: Sums = field(default_factory=Sums)


def place_of(name: str) -> TensorPlace:
    """Read a tensor's place from its name."""
    found = LISTED.search(name)
    if found is None:
        return TensorPlace("", -1, name)
    kind = EXPERT.sub(r"\1.*", name[found.end() + 1 :])
    return TensorPlace(name[: found.start()] or "layer", int(found[1] or found[2]), kind)


def label_stacks(stacks: Iterable[str]) -> dict[str, str]:
    """Stack -> the word that names its layers: "layer", or what tells the stacks apart.

    Args:
        stacks: Paths such as "bert.encoder.layer"; "" is left out.
    """
    paths = [stack for stack in dict.fromkeys(stacks) if stack]
    if len(paths) == 1:
        return {paths[0]: "layer"}
    parts = {path: path.split(".") for path in paths}
    for at in range(max((len(each) for each in parts.values()), default=0)):
        words = [each[at] if at < len(each) else "" for each in parts.values()]
        if len(set(words)) == len(paths) and all(words):
            return dict(zip(paths, words, strict=True))
    return {path: path for path in paths}


def layer_frame(
    found: Sequence[tuple[TensorPlace, str, Sums | None]], places: Sequence[TensorPlace]
) -> tuple[pd.DataFrame, list[str]]:
    """Join tensors by layer and kind.

    Args:
        found: For each tensor that both checkpoints have: its place, status and sums.

    Returns:
        results.Comparison.layers, and for each of `places` what its layer is called.
    """
    labels = label_stacks(place.stack for place in places)
    called = [f"{labels[place.stack]} {place.number}" if place.stack else "" for place in places]
    cells: dict[tuple[str, int, str], _Cell] = {}
    for place, status, sums in found:
        if place.stack:
            cell = cells.setdefault((place.stack, place.number, place.kind), _Cell())
            cell.tensors += 1
            cell.unequal += status not in EQUAL
            if sums:
                cell.sums.add(sums)
    order = {stack: at for at, stack in enumerate(labels)}
    rank = {kind: at for at, kind in enumerate(dict.fromkeys(place.kind for place, _, _ in found))}
    rows = [
        (
            f"{labels[stack]} {number}",
            number,
            kind,
            cell.tensors,
            cell.unequal,
            cell.sums.relative_change,
            cell.sums.cosine,
            cell.sums.max_abs if cell.sums.count else math.nan,
        )
        for (stack, number, kind), cell in sorted(
            cells.items(), key=lambda item: (order[item[0][0]], item[0][1], rank[item[0][2]])
        )
    ]
    return pd.DataFrame(rows, columns=pd.Index(list(COLUMNS))), called
