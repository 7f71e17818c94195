"""Results out of their JSON, as this program wrote it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from inspector.analyses.checks.result import Check, Checks, Evidence
from inspector.analyses.embeddings.result import Norms
from inspector.analyses.snapshots.result import Vitals


def read_checks(plain: dict[str, Any]) -> Checks:
    """Checks out of what `to_json` made of them."""
    checks = (
        check | {"evidence": tuple(Evidence(**each) for each in check["evidence"])}
        for check in plain["checks"]
    )
    named = {name: plain[name] for name in ("name", "fingerprint", "counts")}
    return Checks(**named, checks=tuple(Check(**check) for check in checks))


def read_vitals(plain: dict[str, Any]) -> Vitals:
    """Vitals out of what `to_json` made of them; what was no number is NaN again."""
    columns = ["token", "token_id", "norm"]
    changed = {
        "norms": Norms(**{name: _number(value) for name, value in plain["norms"].items()}),
        "pad_norm": plain["pad_norm"] if plain["pad_id"] is None else _number(plain["pad_norm"]),
        "tokens": pd.DataFrame(plain["tokens"], columns=columns).astype({"norm": float}),
        "vectors": _matrix(plain["vectors"], plain["columns"], np.float32),
        "probes": np.array(plain["probes"], dtype=np.int64),
        "neighbours": _matrix(plain["neighbours"], plain["k"], np.int64),
        "warnings": tuple(plain["warnings"]),
    }
    return Vitals(**(plain | changed))


def _matrix(rows: list[list[Any]], columns: int, dtype: Any) -> np.ndarray:
    return np.array(rows, dtype=dtype).reshape(len(rows), columns)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
