"""What a terminal shows of an overview."""

from __future__ import annotations

from typing import Any

from inspector.analyses.overview.result import Overview
from inspector.analyses.overview.words import tensor_lines, total
from inspector.results.plain import to_json


def in_short(result: Overview) -> dict[str, Any]:
    """The tensors where they were asked for, those of one pattern in one line; else everything else."""
    plain = to_json(result)
    if result.listed_tensors is None:
        del plain["listed_tensors"]
        return plain
    lines = {"tensors": tensor_lines(result.listed_tensors), "total": total(result.listed_tensors)}
    return {"name": result.name, **lines, "warnings": plain["warnings"]}
