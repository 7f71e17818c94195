"""What a terminal shows of a text's plausibility."""

from __future__ import annotations

from typing import Any

from inspector.analyses.plausibility.result import Plausibility
from inspector.analyses.plausibility.words import alternatives, totals
from inspector.results.plain import to_json

LISTED = 2  # alternatives of a token: a line of 80 columns holds them


def in_short(result: Plausibility) -> dict[str, Any]:
    """What is judged in words, and what a line has room for of each token; --json has the rest."""
    plain = to_json(result)
    instead = alternatives(result, count=LISTED)
    rows = [
        {
            "token": row["token"],
            "log_p": _rounded(row["log_probability"]),
            "bits": _rounded(row["bits"]),
            "rank": row["rank"],
            "most_likely_here": instead.get(row["position"], "not judged"),
        }
        for row in plain["tokens"]
    ]
    kept = {name: plain[name] for name in ("text", "device", "dtype", "milliseconds")}
    return kept | {"judged": totals(result), "tokens": rows, "warnings": plain["warnings"]}


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)
