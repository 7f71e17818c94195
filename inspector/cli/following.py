"""The verb that follows numbers over training steps."""

from __future__ import annotations

import math
import sys
from typing import Annotated, Any, get_args

import typer

from inspector.analyses.snapshots.frames import DRAWN, Against, Series, follow, read_vitals
from inspector.batch.asking import Ask, Wait
from inspector.cli.answering import AsJson, answer, app, refusals
from inspector.cli.fleets import Kept, Listed, Sources, ask_many, leave, seek, show_many
from inspector.engine.protocol import Engine
from inspector.errors import RequestError, escaped
from inspector.results.checkpoint import Opened
from inspector.results.plain import to_json
from inspector.store.reference import CheckpointRef
from inspector.store.snapshots import Snapshot

NOWHERE = CheckpointRef("path", "")  # these were asked already, or are known


@app.command()
def vitals(
    checkpoints: Sources = None,
    tokens: Annotated[
        list[str] | None, typer.Option("--token", help="Follow this token (repeatable).")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Neighbours of each row, 1 to 100.")] = 10,
    sample: Annotated[
        int, typer.Option("--sample", help="Rows drawn at random, 0 to 2,000.")
    ] = 200,
    against: Annotated[
        str, typer.Option("--against", help="Of many: first or last, for drift and neighbours.")
    ] = "first",
    listed: Listed = None,
    results: Kept = None,
    as_json: AsJson = False,
) -> None:
    """How do norms, chosen tokens and neighbours change over training steps?"""
    parameters = {"tokens": tuple(tokens or ()), "k": k, "sample": sample}
    with refusals():
        if against not in get_args(Against):
            raise RequestError(f"There is no {against[:40]!r} to measure against: first or last.")
        sought = seek(checkpoints, listed)
        if sought.single is None:
            lines = ask_many(
                sought.entries, lambda engine: _asking(engine, parameters),
                question={"verb": "vitals", **parameters}, results=results, tell=_said,
            )  # fmt: skip
            _show(lines, against, as_json=as_json)
            leave(lines)
            return
    answer("vitals", sought.single, as_json=as_json, then=lambda found: found if as_json
           else _in_short(to_json(found)), **parameters)  # fmt: skip


def _asking(engine: Engine, parameters: dict[str, Any]) -> Ask:
    def ask(_: Snapshot, opened: Opened, wait: Wait) -> dict[str, Any]:
        job = engine.run(opened.fingerprint, "vitals", called=(opened.name,), **parameters)
        return to_json(wait(job))

    return ask


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
    show_many("vitals", lines, as_json=as_json, row=lambda _: next(rows),
              more={"series": to_json(series) if series else None})  # fmt: skip


def _rows(series: Series) -> list[dict[str, Any]]:
    """What fits a terminal: a row a snapshot that has answered, in their order."""
    found: list[dict[str, Any]] = [
        {"median": row["median"], "pad norm": _known(row["pad_norm"])}
        for row in series.norms.to_dict("records")
    ]
    for row in series.drift.to_dict("records"):
        found[row["place"]][f"cosine of {row['token']}"] = _known(row["cosine"])
    for row in series.neighbours.to_dict("records"):
        if row["of"] == DRAWN:
            found[row["place"]]["neighbours kept"] = _known(row["kept"])
    return found


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _said(result: dict[str, Any]) -> str:
    pad = "" if result["pad_norm"] is None else f", padding {result['pad_norm']:.4g}"
    return f"median norm {result['norms']['median'] or float('nan'):.4g}{pad}"


def _in_short(plain: dict[str, Any]) -> dict[str, Any]:
    """Without the vectors and the neighbours, which are for machines."""
    return {name: value for name, value in plain.items()
            if name not in ("vectors", "probes", "neighbours", "vocabulary")}  # fmt: skip
