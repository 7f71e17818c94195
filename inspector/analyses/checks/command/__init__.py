"""The verb that a pipeline asks whether a checkpoint is sound."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from inspector.analyses.checks.command.baseline import compare, read_baseline
from inspector.analyses.checks.command.formats import as_github, as_junit, write_checks
from inspector.analyses.checks.command.many import FORMATS as FORMATS_OF_MANY
from inspector.analyses.checks.command.many import check_many, is_failing
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks, read_checks
from inspector.cli.answering import AsJson, OnIt, ask, refusals, write_json
from inspector.cli.batches import Kept, Listed, Sources, leave, seek
from inspector.cli.verbs import flagged
from inspector.errors import RequestError

FAILED = 1  # exit status


def _write_json(checks: Checks, *, strict: bool) -> None:
    write_json(checks)


FORMATS: dict[str, Callable[..., None]] = {
    "table": lambda checks, *, strict: write_checks(checks, CheckRequest(), strict=strict),
    "json": _write_json,
    "github": lambda checks, *, strict: _print(as_github(checks, strict=strict)),
    "junit": lambda checks, *, strict: _print(as_junit(checks, strict=strict)),
}


def check(
    checkpoints: Sources = None,
    *,
    listed: Listed = None,
    results: Kept = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", help="JSON output of an earlier run: only new or worse problems count as failures."),
    ] = None,
    form: Annotated[str, typer.Option("--format", help=f"Output format: {', '.join(FORMATS)}.")] = "table",
    strict: Annotated[bool, typer.Option("--strict", help="Count warnings as failures.")] = False,
    values: Annotated[str, flagged(CheckRequest, "values")] = CheckRequest.values,
    on_it: OnIt = "",
    as_json: AsJson = False,
) -> None:
    """Is anything wrong with one or more checkpoints? Exits with status 1 if a check fails."""
    with refusals():
        form = "json" if as_json and form == "table" else form
        write = _writer(form, as_json=as_json)
        request = CheckRequest(values=values)
        earlier = read_baseline(baseline) if baseline else None
        sought = seek(checkpoints, listed, on_it=on_it)
        if sought.single is None:
            if earlier is not None:
                raise RequestError("--baseline takes a single checkpoint: check them one at a time.")
            lines = check_many(sought.entries, request, results=results, strict=strict)
            FORMATS_OF_MANY[form](lines, strict=strict)
            leave(lines, failed=is_failing(lines, strict=strict))
            return

    checks = read_checks(ask(request.verb, sought.single, on_it=on_it, **request.parameters()))
    with refusals():
        if earlier is not None:
            checks = dataclasses.replace(checks, baseline=compare(checks, earlier))
    write(checks, strict=strict)
    if checks.failing(strict=strict):
        raise typer.Exit(FAILED)


def _writer(form: str, *, as_json: bool) -> Callable[..., Any]:
    if form not in FORMATS:
        raise RequestError(f"Unknown format {form[:40]!r}: use one of {', '.join(FORMATS)}.")
    if as_json and form != "json":
        raise RequestError(f"--json and --format {form} cannot be combined: use one of them.")
    return FORMATS[form]


def _print(text: str) -> None:
    sys.stdout.write(text)


COMMAND = check
