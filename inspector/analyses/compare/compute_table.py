"""Lay out what was found of every tensor: the table, the layers, the whole, and what to warn of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from inspector.analyses.compare import words
from inspector.analyses.compare.compute_layers import layer_frame, place_of
from inspector.analyses.compare.compute_names import Pair, Spelling
from inspector.analyses.compare.compute_parts import StoredTensor, Sums
from inspector.analyses.compare.compute_tensors import TensorComparison
from inspector.analyses.compare.result import STATUSES
from inspector.text import some

NAMED = 3  # names in a warning


@dataclass(frozen=True, slots=True)
class TableRow:
    """One line of the table."""

    pair: Pair
    one: StoredTensor | None
    other: StoredTensor | None
    found: TensorComparison


def tables(rows: Sequence[TableRow], spelling: Spelling) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make results.Comparison.tensors and .layers."""
    places = [place_of(spelling(row.pair.name or row.pair.other or "")) for row in rows]
    paired = [
        (place, row.found.status, row.found.sums)
        for place, row in zip(places, rows, strict=True)
        if row.one and row.other
    ]
    layers, labels = layer_frame(paired, places)
    records = [
        _record(row) | {"layer": label, "kind": place.kind}
        for row, place, label in zip(rows, places, labels, strict=True)
    ]
    return pd.DataFrame(records), layers


def count(rows: Sequence[TableRow]) -> dict[str, int]:
    """Status -> tensors, in the order of STATUSES."""
    found = [row.found.status for row in rows]
    return {status: found.count(status) for status in STATUSES if status in found}


def _record(row: TableRow) -> dict[str, object]:
    one, other, found, sums = row.one, row.other, row.found, row.found.sums
    return {
        "name": row.pair.name or row.pair.other,
        "status": found.status,
        "cosine": sums.cosine if sums else math.nan,
        "relative_change": sums.relative_change if sums else math.nan,
        "max_abs": sums.max_abs if sums else math.nan,
        "other_name": row.pair.other or "",
        "matched": row.pair.matched,
        "shape": _shape(one),
        "other_shape": _shape(other),
        "dtype": one.dtype if one else "",
        "other_dtype": other.dtype if other else "",
        "parameters": max(math.prod(each.info.shape) for each in (one, other) if each),
        "norm": math.sqrt(sums.first) if sums else math.nan,
        "other_norm": math.sqrt(sums.second) if sums else math.nan,
        "nearest": found.nearest,
        "not_finite": found.not_finite,
        "other_not_finite": found.other_not_finite,
        "note": found.note,
    }


def whole(rows: Sequence[TableRow]) -> Sums:
    """All measured tensors as one vector; bytes that have several names are counted once."""
    total, seen = Sums(), set()
    for row in rows:
        if row.found.sums and row.one and row.other:
            places = frozenset(
                (side, each.info.file, each.info.begin) for side, each in (("first", row.one), ("second", row.other))
            )
            if row.pair.matched != "tie" and places not in seen:
                total.add(row.found.sums)
            seen.add(places)
    return total


def not_finite_warnings(rows: Sequence[TableRow], names: tuple[str, str]) -> list[str]:
    """Name the tensors that hold NaN or infinity."""
    said = []
    for name, bad in (
        (names[0], [row.pair.name for row in rows if row.found.not_finite]),
        (names[1], [row.pair.other for row in rows if row.found.other_not_finite]),
    ):
        if bad:
            said.append(words.not_finite(name, some(list(map(str, bad)), NAMED)))
    return said


def _shape(stored: StoredTensor | None) -> str:
    return "" if stored is None else " × ".join(map(str, stored.info.shape)) or "scalar"
