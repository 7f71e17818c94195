"""Mark fields for the pages alone, and turn results into plain JSON values."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import field
from typing import Any


def local(*, default: Any = dataclasses.MISSING) -> Any:
    """Mark a field for the pages alone: `to_json` leaves it out."""
    return field(default=default, metadata={"local": True})


# NaN here means "no such number": a cosine is no probability, a zero vector has no direction.
UNDEFINED = frozenset(
    {
        "averaging.padding_norm",
        "cells.probability",
        *(f"experts.{name}" for name in ("norm", "router_norm", "router_bias", "selection_bias")),
        *(f"geometry.{name}" for name in ("cosine", "dot", "bias", "logit", "probability")),
        *(f"layers.{name}" for name in ("cosine", "max_abs", "relative_change")),
        "median_cosine",
        "median_distance",
        *(f"overall.{name}" for name in ("cosine", "max_abs", "relative_change")),
        "pinned.probability",
        "places.cosine",
        "ranks.probability",
        "relative_before",
        "shared.norm",
        *(f"targets.{name}" for name in ("effective_alpha", "effective_rank", "noise", "norm", "share", "share_kept")),
        *(f"tensors.{name}" for name in ("cosine", "max_abs", "nearest", "norm", "other_norm", "relative_change")),
        "tokens.best_probability",
        "tokens.bits",
        "tokens.log_probability",
        "tokens.loss",
        "tokens.norm",
        "tokens.output_bias",
        "tokens.percentile",
        "tokens.probability",
        "tensors.coefficient",
        "tokens_moved.cosine",
        "tokens_moved.relative_change",
    }
)


PLAIN = {str, int, bool, type(None)}


def to_json(result: Any) -> dict[str, Any]:
    """Turn a result into plain JSON values.

    Returns:
        The fields that are not local. NaN and infinities become None, and a `warnings` entry
        counts them, so that the JSON is strict.
    """
    replaced: list[str] = []
    plain = _plain(result, "", replaced)
    if replaced:
        fields = ", ".join(sorted(set(replaced)))
        plain["warnings"] = [
            *plain.get("warnings", []),
            f"{len(replaced)} numbers are NaN or infinite and are given as null, in: {fields}.",
        ]
    return plain


def _plain(value: Any, path: str, replaced: list[str]) -> Any:
    if type(value) in PLAIN:  # nearly every value
        return value
    if dataclasses.is_dataclass(value):
        fields = (f.name for f in dataclasses.fields(value) if not f.metadata.get("local"))
        return {name: _plain(getattr(value, name), name, replaced) for name in fields}
    if hasattr(value, "to_dict"):  # a frame
        return [_plain(row, path, replaced) for row in value.to_dict("records")]
    if hasattr(value, "tolist") and hasattr(value, "__len__"):  # a NumPy array
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item, f"{path}.{key}", replaced) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, path, replaced) for item in value]
    return _plain_scalar(value, path, replaced)


def _plain_scalar(value: Any, path: str, replaced: list[str]) -> Any:
    if hasattr(value, "item"):  # a NumPy scalar out of a frame
        value = value.item()
    if type(value).__name__ == "NAType":  # pandas' own "no such number" in columns of integers
        return None
    if isinstance(value, float) and not math.isfinite(value):
        if path not in UNDEFINED:
            replaced.append(path)
        return None
    return value
