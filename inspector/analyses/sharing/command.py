"""What a terminal shows of an audit of sharing."""

from __future__ import annotations

from typing import Any

from inspector.analyses.sharing.result import SharedGroup, Sharing
from inspector.results.plain import to_json
from inspector.text import bytes_text, shape_text


def in_short(result: Sharing) -> dict[str, Any]:
    """Of each group what tells it from others; --json has the places of every name as well."""
    plain = to_json(result)
    totals = {
        "listed": f"{result.listed_parameters:,} parameters, {bytes_text(result.listed_nbytes)}, counting every name",
        "unique": (
            f"{result.unique_parameters:,} parameters, {bytes_text(result.unique_nbytes)}, counting every number once"
        ),
    }
    return totals | {
        "groups": [_group(group) for group in result.groups],
        "reused_modules": plain["reused_modules"],
        "warnings": plain["warnings"],
    }


def _group(group: SharedGroup) -> dict[str, Any]:
    return {
        "names": list(group.names),
        "verdict": group.verdict,
        "shape": f"{shape_text(group.shape)}, {bytes_text(group.nbytes)}",
        "in_file": list(group.in_file),
        "why": group.reason,
    }
