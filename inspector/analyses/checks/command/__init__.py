"""The verb that a pipeline asks whether a checkpoint is sound."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from inspector.analyses.checks.command.baseline import compare, read_baseline
from inspector.analyses.checks.command.formats import as_github, as_junit, write_checks
from inspector.analyses.checks.command.many import FORMATS as FORMATS_OF_MANY
from inspector.analyses.checks.command.many import check_many, is_failing, is_unjudged
from inspector.analyses.checks.command.sarif import as_sarif
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks, read_checks
from inspector.cli.answering import AsJson, OnIt, ask, refusals, write_json
from inspector.cli.batches import Kept, Listed, Sources, leave, seek
from inspector.cli.verbs import flagged
from inspector.errors import RequestError
from inspector.results.findings import KNOWN
from inspector.text import escaped

FAILED, UNJUDGED = 1, 3  # exit statuses: a check failed; none did, but one could not be made


def _write_json(checks: Checks, *, strict: bool) -> None:
    write_json(checks)


FORMATS: dict[str, Callable[..., None]] = {
    "table": lambda checks, *, strict: write_checks(checks, CheckRequest(), strict=strict),
    "json": _write_json,
    "github": lambda checks, *, strict: _print(as_github(checks, strict=strict)),
    "junit": lambda checks, *, strict: _print(as_junit(checks, strict=strict)),
    "sarif": lambda checks, *, strict: _print(as_sarif([(checks.name, checks)], strict=strict)),
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
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            help="Id of a finding that does not count in the exit status (docs/findings.md lists them); repeatable. "
            "--json keeps it, and so does a baseline.",
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", help=f"Output format: {', '.join(FORMATS)}.")] = "table",
    strict: Annotated[bool, typer.Option("--strict", help="Count warnings as failures.")] = False,
    values: Annotated[str, flagged(CheckRequest, "values")] = CheckRequest.values,
    on_it: OnIt = "",
    as_json: AsJson = False,
) -> None:
    """Is anything wrong with one or more checkpoints? Exits with 1 if a check fails, 3 if one cannot be made."""
    with refusals():
        form = "json" if as_json and form == "table" else form
        write = _writer(form, as_json=as_json)
        request = CheckRequest(values=values)
        earlier = read_baseline(baseline) if baseline else None
        accepted = _accepted(accept or ())
        sought = seek(checkpoints, listed, on_it=on_it)
        if sought.single is None:
            if earlier is not None:
                raise RequestError("--baseline takes a single checkpoint: check them one at a time.")
            lines = check_many(sought.entries, request, results=results, strict=strict, accepted=accepted)
            FORMATS_OF_MANY[form](lines, strict=strict)
            leave(lines, failed=is_failing(lines, strict=strict))
            if is_unjudged(lines):
                raise typer.Exit(UNJUDGED)
            return

    checks = read_checks(ask(request.verb, sought.single, on_it=on_it, **request.parameters()))
    accepted = tuple(dict.fromkeys((*(earlier.accepted if earlier else ()), *accepted)))
    checks = dataclasses.replace(checks, accepted=accepted)
    with refusals():
        if earlier is not None:
            checks = dataclasses.replace(checks, baseline=compare(checks, earlier))
    write(checks, strict=strict)
    if checks.failing(strict=strict):
        raise typer.Exit(FAILED)
    if checks.unjudged():
        raise typer.Exit(UNJUDGED)


def _accepted(ids: Sequence[str]) -> tuple[str, ...]:
    for each in ids:
        if each not in KNOWN:
            close = get_close_matches(each, KNOWN, n=1) or ["values.nan"]
            raise RequestError(
                f"No check has a finding {escaped(each[:60])!r}: docs/findings.md lists them, such as {close[0]}."
            )
    return tuple(dict.fromkeys(ids))


def _writer(form: str, *, as_json: bool) -> Callable[..., Any]:
    if form not in FORMATS:
        raise RequestError(f"Unknown format {form[:40]!r}: use one of {', '.join(FORMATS)}.")
    if as_json and form != "json":
        raise RequestError(f"--json and --format {form} cannot be combined: use one of them.")
    return FORMATS[form]


def _print(text: str) -> None:
    sys.stdout.write(text)


COMMAND = check
