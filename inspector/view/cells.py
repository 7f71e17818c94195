"""How a value of a table reads, and the name of its column."""

from __future__ import annotations

import math
from typing import Any

from inspector.text import bytes_text, shorten

IDS = ("id", "position", "layer", "update", "step", "start", "end")  # numbers that are names
KNOWN = {"nbytes": "size", "token_id": "id", "neighbours": "neighbors"}
LONGEST = 400  # characters of a cell; a CSV has all of them


def cell_text(value: Any, column: str = "") -> str:
    """A value as people read it; a missing one as a dash."""
    if hasattr(value, "item"):
        value = value.item()
    if value is None or type(value).__name__ == "NAType":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _count(column, value)
    if isinstance(value, float):
        return f"{value:.5g}" if math.isfinite(value) else "–"
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return shorten(str(value), LONGEST)


def _count(column: str, value: int) -> str:
    if column.endswith("nbytes"):
        return bytes_text(value)
    return str(value) if column in IDS or column.endswith("_id") else f"{value:,}"


def column_label(name: Any) -> str:
    """What a column is called."""
    return KNOWN.get(str(name), str(name).removesuffix("_nbytes").replace("_", " "))


def is_amount(value: Any) -> bool:
    """Whether a value stands at the right."""
    return isinstance(value, int | float) and not isinstance(value, bool)
