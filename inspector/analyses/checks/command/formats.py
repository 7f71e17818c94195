"""Write checks for people, for GitHub's annotations, and as JUnit's XML for other pipelines."""

from __future__ import annotations

from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table
from rich.text import Text

from inspector.analyses.checks.result import Check, Checks, Evidence
from inspector.analyses.checks.words import summary
from inspector.text import escaped

# status -> sign, word, style: the word says it, sign and color repeat it
STATUS = {"ok": ("✓", "ok", "green"), "warn": ("!", "warn", "yellow"), "fail": ("✗", "fail", "bold red")}
SHOWN = 10  # pieces of evidence of one check
REPORTED = ("minor", "major", "critical")


def write_checks(checks: Checks, *, strict: bool) -> None:
    """Print a table of all checks, worst first, and the evidence of those that are not ok."""
    console = Console(highlight=False)
    table = Table(title=Text(f"Checks of {escaped(checks.name)}"), title_justify="left")
    for column in ("status", "severity", "check", "found"):
        table.add_column(column)
    for check in checks.worst_first():
        sign, word, style = STATUS[check.status]
        table.add_row(
            Text(f"{sign} {word}", style=style),
            check.severity,
            check.name,
            Text(escaped(" ".join(filter(None, (check.detail, check.next_step))))),
        )
    console.print(table)
    for check in checks.worst_first():
        if check.status != "ok" and check.evidence:
            console.print(Text(f"\n{check.name}", style="bold"))
            for line in _lines(check):
                console.print(Text(f"  {line}"))
    for line in summary(checks, strict=strict):
        console.print(Text(escaped(line)))


def as_github(checks: Checks, *, strict: bool) -> str:
    """Write GitHub's workflow commands, one a check that is not ok, and the summary.

    See "Workflow commands for GitHub Actions". A check that the baseline knows is a notice.
    """
    failing = checks.failing(strict=strict)
    lines = []
    for check in checks.worst_first():
        if check.status == "ok":
            continue
        level = "error" if check in failing else "warning"
        if checks.baseline and check not in failing:
            level = "notice"
        said = "\n".join([f"{check.detail} {check.next_step}".strip(), *_lines(check)])
        title = _property(f"{check.name} ({checks.name})")
        lines.append(f"::{level} title={title}::{_data(said)}")
    # "##[" anywhere in a line is a command of GitHub's older kind.
    lines += [escaped(line).replace("##[", "## [") for line in summary(checks, strict=strict)]
    return "\n".join(lines) + "\n"


def as_junit(checks: Checks, *, strict: bool) -> str:
    """Write JUnit's XML: one test case a check; warnings go to its output."""
    failing = checks.failing(strict=strict)
    unchecked = [check for check in checks.checks if not check.checked and check not in failing]
    numbers = {
        "tests": str(len(checks.checks)),
        "failures": str(len(failing)),
        "errors": "0",
        "skipped": str(len(unchecked)),
    }
    name = f"checkpoint {escaped(checks.name)}"
    root = ElementTree.Element("testsuites", numbers)
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, **numbers})
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", {"name": "fingerprint", "value": checks.fingerprint})
    for check in checks.checks:
        case = ElementTree.SubElement(suite, "testcase", {"classname": name, "name": check.name})
        _fill(case, check, failed=check in failing, skipped=check in unchecked)
    output = ElementTree.SubElement(suite, "system-out")
    output.text = "\n".join(escaped(line) for line in summary(checks, strict=strict))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _fill(case: ElementTree.Element, check: Check, *, failed: bool, skipped: bool) -> None:
    detail = escaped(check.detail)
    lines = [line for line in (detail, escaped(check.next_step), *_lines(check)) if line]
    if failed:
        problem = ElementTree.SubElement(case, "failure", {"message": detail, "type": check.severity})
        problem.text = "\n".join(lines)
    elif skipped:
        ElementTree.SubElement(case, "skipped", {"message": detail})
    else:
        output = ElementTree.SubElement(case, "system-out")
        output.text = "\n".join([f"{check.status} ({check.severity})", *lines])


def _lines(check: Check) -> list[str]:
    """The first pieces of evidence that count, one a line."""
    found = [each for each in check.evidence if each.severity in REPORTED]
    lines = [_line(each) for each in found[:SHOWN]]
    rest = check.found - len(check.evidence) + len(found) - len(lines)
    return [*lines, f"… and {rest:,} more: --json has them."] if rest else lines


def _line(evidence: Evidence) -> str:
    return escaped(f"{evidence.subject}: {evidence.problem}. {evidence.detail}")


def _data(text: str) -> str:
    encoded = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped(encoded)  # other control characters have no code there, and terminals obey them


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
