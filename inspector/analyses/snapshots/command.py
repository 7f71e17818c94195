"""The verb `vitals`: of one checkpoint, or of many over training steps."""

from __future__ import annotations

import math
import sys
from typing import Annotated, Any

from inspector.analyses.snapshots.frames import DRAWN, Series, follow, read_vitals
from inspector.analyses.snapshots.request import SeriesRequest, VitalsRequest
from inspector.cli.answering import AsJson, OnIt, answer, refusals
from inspector.cli.batches import Kept, Listed, Sources, ask_many, asking, leave, seek, show_many
from inspector.cli.verbs import flagged, gathered
from inspector.results.plain import to_json
from inspector.store.origins.snapshots import Snapshot
from inspector.store.reference import CheckpointRef
from inspector.text import escaped

NOWHERE = CheckpointRef("path", "")  # these were asked already, or are known


def vitals(
    checkpoints: Sources = None,
    *,
    tokens: Annotated[list[str] | None, flagged(VitalsRequest, "tokens")] = None,
    k: Annotated[int, flagged(VitalsRequest, "k")] = VitalsRequest.k,
    sample: Annotated[int, flagged(VitalsRequest, "sample")] = VitalsRequest.sample,
    seed: Annotated[int, flagged(VitalsRequest, "seed")] = VitalsRequest.seed,
    against: Annotated[str, flagged(SeriesRequest, "against")] = SeriesRequest.against,
    listed: Listed = None,
    results: Kept = None,
    on_it: OnIt = "",
    as_json: AsJson = False,
) -> None:
    """How do norms, chosen tokens and neighbors change over training steps?"""
    with refusals(VitalsRequest):
        parameters = gathered(VitalsRequest, {"tokens": tokens, "k": k, "sample": sample, "seed": seed})
        with refusals(SeriesRequest):
            SeriesRequest(against=against)
        sought = seek(checkpoints, listed, on_it=on_it)
        if sought.single is None:
            lines = ask_many(
                sought.entries,
                asking("vitals", parameters),
                question={"verb": "vitals", **parameters},
                results=results,
                tell=_said,
            )
            _show(lines, against, as_json=as_json)
            leave(lines)
            return
    answer("vitals", sought.single, as_json=as_json, on_it=on_it, **parameters)


def _show(lines: list[dict[str, Any]], against: Any, *, as_json: bool) -> None:
    answers = [
        (Snapshot(line["checkpoint"], NOWHERE, line["step"]), read_vitals(line["result"]))
        for line in lines
        if line["status"] == "done"
    ]
    series = follow(answers, against=against) if answers else None
    for warning in series.warnings if series else ():
        sys.stderr.write(f"Warning: {escaped(warning)}\n")
    rows = iter(_rows(series) if series else ())
    show_many(
        "vitals", lines, as_json=as_json, row=lambda _: next(rows), more={"series": to_json(series) if series else None}
    )


def _rows(series: Series) -> list[dict[str, Any]]:
    """What fits a terminal: a row a snapshot that has answered, in their order."""
    found: list[dict[str, Any]] = [
        {"median": row["median"], "pad norm": _known(row["pad_norm"])} for row in series.norms.to_dict("records")
    ]
    for row in series.drift.to_dict("records"):
        found[row["place"]][f"cosine of {row['token']}"] = _known(row["cosine"])
    for row in series.neighbours.to_dict("records"):
        if row["of"] == DRAWN:
            found[row["place"]]["neighbors kept"] = _known(row["kept"])
    return found


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _said(result: dict[str, Any]) -> str:
    pad = "" if result["pad_norm"] is None else f", padding {result['pad_norm']:.4g}"
    return f"median norm {result['norms']['median'] or float('nan'):.4g}{pad}"


COMMAND = vitals
