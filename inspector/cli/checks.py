"""The verb that a pipeline asks whether a checkpoint is sound."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from inspector.cli.answering import AsJson, Source, app, ask, refusals, show
from inspector.cli.check_baseline import compare, read_baseline
from inspector.cli.check_formats import as_github, as_junit, write_checks
from inspector.errors import RequestError
from inspector.results import Checks

FAILED = 1  # exit status
FORMATS: dict[str, Callable[..., None]] = {
    "table": write_checks,
    "json": lambda checks, *, strict: show(checks, as_json=True),
    "github": lambda checks, *, strict: _print(as_github(checks, strict=strict)),
    "junit": lambda checks, *, strict: _print(as_junit(checks, strict=strict)),
}


@app.command()
def check(
    checkpoint: Source,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", help="What an earlier run printed with --json: only what is "
                     "new or worse fails."),
    ] = None,
    form: Annotated[str, typer.Option("--format", help=f"{', '.join(FORMATS)}.")] = "table",
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail, too.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Is anything wrong with this checkpoint? Exit status 1 if a check failed."""
    with refusals():
        write = _writer("json" if as_json and form == "table" else form, as_json=as_json)
        earlier = read_baseline(baseline) if baseline else None

    def then(checks: Checks) -> Checks:
        if earlier is None:
            return checks
        return dataclasses.replace(checks, baseline=compare(checks, earlier))

    checks: Checks = ask("check", checkpoint, then=then)
    write(checks, strict=strict)
    if checks.failing(strict=strict):
        raise typer.Exit(FAILED)


def _writer(form: str, *, as_json: bool) -> Callable[..., Any]:
    if form not in FORMATS:
        raise RequestError(f"There is no format {form[:40]!r}: use one of {', '.join(FORMATS)}.")
    if as_json and form != "json":
        raise RequestError(f"--json and --format {form} are two formats: give one of them.")
    return FORMATS[form]


def _print(text: str) -> None:
    sys.stdout.write(text)
