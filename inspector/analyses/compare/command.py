"""The verb that compares two checkpoints, or the first of many with each of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from inspector.analyses.compare.request import CompareRequest
from inspector.analyses.compare.result import EQUAL
from inspector.batch.asking import BatchEntry
from inspector.cli.answering import AsJson, OnIt, answer, refusals, task_of
from inspector.cli.batches import Kept, Listed, Sources, ask_many, leave, names_run, seek, show_many
from inspector.cli.child import Task
from inspector.cli.verbs import flagged
from inspector.errors import CheckpointError, RequestError
from inspector.store.origins.snapshots import Snapshot


def compare(
    checkpoints: Sources = None,
    *,
    listed: Listed = None,
    results: Kept = None,
    previous: Annotated[
        bool,
        typer.Option(
            "--previous", help="With several checkpoints, compare each with the one before it, not with the first."
        ),
    ] = False,
    moved: Annotated[int, flagged(CompareRequest, "moved")] = CompareRequest.moved,
    values: Annotated[str, flagged(CompareRequest, "values")] = CompareRequest.values,
    on_it: OnIt = "",
    as_json: AsJson = False,
) -> None:
    """What changed between two checkpoints, or between the first of several and each of the others?"""
    given = checkpoints or []
    with refusals(CompareRequest):
        request = CompareRequest(other=given[-1] if given else "", moved=moved, values=values)
        entries = seek(checkpoints, listed).entries
        if len(entries) < 2:
            raise RequestError("Name at least two checkpoints to compare, or a folder of snapshots.")
        if not _is_pair(given, listed, entries):
            if on_it:
                raise RequestError("--adapter goes on the first of two checkpoints: name two.")
            pairs = _pairs(entries, previous=previous)
            question = {"verb": request.verb, "previous": previous, "moved": moved, "values": values}
            lines = ask_many(
                [pair for pair, _ in pairs],
                lambda snapshot: _task(snapshot, dict(pairs)[snapshot], request),
                question=question,
                results=results,
                by_content=False,
                after=lambda snapshot, result: {"against": _baseline(dict(pairs)[snapshot]).name, **result},
                tell=_summary,
            )
            show_many(request.verb, lines, as_json=as_json, row=_row)
            leave(lines)
            return
    answer(request.verb, given[0], as_json=as_json, beside={"other": given[1]}, on_it=on_it, moved=moved, values=values)


def _is_pair(given: Sequence[str], listed: Path | None, entries: Sequence[Snapshot | BatchEntry]) -> bool:
    """Whether two single checkpoints were named: the answer is then about them alone."""
    two = listed is None and len(given) == 2 == len(entries)
    return two and not any(map(names_run, given))


def _pairs(
    entries: Sequence[Snapshot | BatchEntry], *, previous: bool
) -> list[tuple[Snapshot | BatchEntry, Snapshot | None]]:
    """Each checkpoint with the one that it is compared with; known by the files of both."""
    first = entries[0]
    if isinstance(first, BatchEntry):
        raise CheckpointError(f"The first checkpoint could not be opened: {first.error}")
    pairs: list[tuple[Snapshot | BatchEntry, Snapshot | None]] = []
    before = first
    for entry in entries[1:]:
        if isinstance(entry, BatchEntry):
            pairs.append((entry, None))
            continue
        both = (before.identity, entry.identity)
        identity = None if None in both else " ".join(map(str, both))
        pairs.append((replace(entry, identity=identity), before))
        before = entry if previous else first
    return pairs


def _task(snapshot: Snapshot, before: Snapshot | None, request: CompareRequest) -> Task:
    references = (_baseline(before).reference, snapshot.reference)
    return replace(task_of(request.verb, references, request.parameters()), about=1, beside=(_baseline(before).name,))


def _baseline(before: Snapshot | None) -> Snapshot:
    if before is None:
        raise RequestError("This checkpoint has no baseline.")
    return before


def _summary(result: dict[str, Any]) -> str:
    return f"compared with {result['against']}: {' '.join(result['summary'][:1])}"


def _row(result: dict[str, Any]) -> dict[str, Any]:
    statuses = [tensor["status"] for tensor in result["tensors"]]
    return {
        "against": result["against"],
        "tensors": len(statuses),
        "not equal": sum(status not in EQUAL for status in statuses),
        "ties changed": len(result["ties_changed"]),
        "relative change": result["overall"]["relative_change"],
    }


COMMAND = compare
