"""Check many checkpoints, and write what came of them in the formats of one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from inspector.analyses.checks.command.formats import as_github, as_junit
from inspector.analyses.checks.command.sarif import as_sarif
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks, read_checks
from inspector.batch.asking import BatchEntry
from inspector.cli.batches import ask_many, asking, show_many
from inspector.store.origins.snapshots import Snapshot
from inspector.text import escaped

Line = dict[str, Any]
COUNTED = ("tests", "failures", "errors", "skipped")


def check_many(
    sought: Sequence[Snapshot | BatchEntry],
    request: CheckRequest,
    *,
    results: Path | None,
    strict: bool,
    accepted: tuple[str, ...] = (),
) -> list[Line]:
    """Check many checkpoints; gives what came of each, in their order."""

    def tell(result: Line) -> str:
        checks = replace(read_checks(result), accepted=accepted)
        failing = [check.name for check in checks.failing(strict=strict)]
        return f"failed: {', '.join(failing)}" if failing else "passed"

    question = {"verb": request.verb, **request.parameters()}
    ask = asking(request.verb, request.parameters())
    lines = ask_many(sought, ask, question=question, results=results, tell=tell)
    for line in lines:
        if line["status"] == "done":
            line["result"] = line["result"] | {"accepted": accepted}
    return lines


def is_failing(lines: Sequence[Line], *, strict: bool) -> bool:
    """Whether a check of any of them failed."""
    return any(checks.failing(strict=strict) for checks in _checked(lines))


def is_unjudged(lines: Sequence[Line]) -> bool:
    """Whether a check of any of them could not be made."""
    return any(checks.unjudged() for checks in _checked(lines))


def _write_table(lines: Sequence[Line], *, strict: bool) -> None:
    def row(result: Line) -> Line:
        checks = read_checks(result)
        failing = ", ".join(check.name for check in checks.failing(strict=strict))
        return {**checks.counts, "failing": failing or "–"}

    show_many("check", list(lines), as_json=False, row=row)


def _write_json(lines: Sequence[Line], *, strict: bool) -> None:
    show_many("check", list(lines), as_json=True, row=dict)


def _write_github(lines: Sequence[Line], *, strict: bool) -> None:
    for line in lines:
        if line["status"] == "done":
            checks = replace(read_checks(line["result"]), name=line["checkpoint"])  # folders may have the same name
            sys.stdout.write(as_github(checks, strict=strict))
        else:
            said = escaped(f"{line['checkpoint']}: {line['error']}").replace("%", "%25")
            sys.stdout.write(f"::error title={line['status']}::{said}\n")


def _write_junit(lines: Sequence[Line], *, strict: bool) -> None:
    root = ElementTree.Element("testsuites")
    for line in lines:
        if line["status"] == "done":
            text = as_junit(read_checks(line["result"]), strict=strict)
            root.extend(ElementTree.fromstring(text.partition("\n")[2]))
        else:
            root.append(_refused_suite(line))
    for name in COUNTED:
        root.set(name, str(sum(int(suite.get(name, 0)) for suite in root)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    sys.stdout.write(f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n')


def _write_sarif(lines: Sequence[Line], *, strict: bool) -> None:
    found = [
        (line["checkpoint"], read_checks(line["result"]) if line["status"] == "done" else str(line["error"]))
        for line in lines
    ]
    sys.stdout.write(as_sarif(found, strict=strict))


def _refused_suite(line: Line) -> ElementTree.Element:
    name = f"checkpoint {escaped(line['checkpoint'])}"
    numbers = dict(zip(COUNTED, ("1", "0", "1", "0"), strict=True))
    suite = ElementTree.Element("testsuite", {"name": name, **numbers})
    case = ElementTree.SubElement(suite, "testcase", {"classname": name, "name": "open"})
    ElementTree.SubElement(case, "error", {"message": escaped(line["error"]), "type": line["status"]})
    return suite


def _checked(lines: Sequence[Line]) -> list[Checks]:
    return [read_checks(line["result"]) for line in lines if line["status"] == "done"]


FORMATS: dict[str, Callable[..., None]] = {
    "table": _write_table,
    "json": _write_json,
    "github": _write_github,
    "junit": _write_junit,
    "sarif": _write_sarif,
}
