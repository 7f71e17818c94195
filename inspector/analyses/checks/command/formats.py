"""Write checks for people, for GitHub's annotations, and as JUnit's XML for other pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

from inspector.analyses.checks import words_loading
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import OUTCOMES, REPORTED, Check, Checks, Evidence
from inspector.analyses.checks.view import view
from inspector.analyses.checks.words import reading, summary
from inspector.analyses.checks.words_loading import ties
from inspector.cli.answering import write
from inspector.names import group_names
from inspector.text import escaped
from inspector.view.blocks import Bullets, Sentence
from inspector.view.screen import first_rows, screen_of

SHOWN = 10  # pieces of evidence of one check
LOST = OUTCOMES[:4]  # outcomes for which the table of what is loaded is shown


def write_checks(checks: Checks, request: CheckRequest, *, strict: bool) -> None:
    """Print the verdict, each problem with its evidence, what passed, and the result for a pipeline."""
    screen = screen_of(view(checks, request, name=checks.name))
    blocks = [*screen.blocks]
    for check in checks.worst_first():
        if check.status != "ok" and check.evidence:
            blocks += [Sentence(f"{check.name}: evidence"), Bullets(tuple(_lines(check)))]
    if any(row.outcome in LOST for row in checks.loading):
        from inspector.analyses.checks.frames import loading_frame  # half a second of the verb

        frame = loading_frame(checks.loading)
        blocks.append(first_rows(words_loading.TITLE, frame, len(frame)))
    if any(row.outcome in (ties.THROWN_AWAY, ties.RANDOM) for row in checks.ties):
        from inspector.analyses.checks.frames import tie_frame

        blocks.append(first_rows(ties.TITLE, tie_frame(checks.ties), len(checks.ties)))
    counts, *changes = summary(checks, strict=strict)
    if changes := [each for each in changes if each != reading(checks)]:
        blocks += [Bullets(tuple(changes))]
    write(replace(screen, blocks=tuple(blocks), more=counts))


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
        if check not in failing and (checks.baseline or checks.counted(check) not in REPORTED):
            level = "notice"
        said = "\n".join([f"{check.detail} {check.next_step}".strip(), *_lines(check)])
        title = _property(" ".join(part for part in (check.name, f"({checks.name})", *_unmade(check)) if part))
        lines.append(f"::{level} title={title}::{_data(said)}")
    # "##[" anywhere in a line is a command of GitHub's older kind.
    first, *others = summary(checks, strict=strict)
    said = (f"Checkpoint {checks.name}: {first}", *others)
    lines += [escaped(line).replace("##[", "## [") for line in said]
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
    lines = [line for line in (detail, escaped(check.next_step), *_unmade(check), *_lines(check)) if line]
    if failed:
        problem = ElementTree.SubElement(case, "failure", {"message": detail, "type": check.severity})
        problem.text = "\n".join(lines)
    elif skipped:
        ElementTree.SubElement(case, "skipped", {"message": detail})
    else:
        output = ElementTree.SubElement(case, "system-out")
        output.text = "\n".join([f"{check.status} ({check.severity})", *lines])


def _lines(check: Check) -> list[str]:
    """The first pieces of evidence that count, one a line; of many those with names alike share a line."""
    found = [each for each in check.evidence if each.severity in REPORTED]
    many = len(found) > SHOWN
    alike = [(each.problem, each.severity) if many else place for place, each in enumerate(found)]
    groups = group_names([each.subject for each in found], alike)
    lines = [_line(group.label, [found[place] for place in group.places]) for group in groups[:SHOWN]]
    unlisted = check.found - len(check.evidence)
    rest = unlisted + sum(len(group.places) for group in groups[SHOWN:])
    has = f"lists the first {len(check.evidence):,}" if unlisted else "lists them"
    return [*lines, f"… and {rest:,} more: --json {has}."] if rest else lines


def _line(label: str, pieces: Sequence[Evidence]) -> str:
    """What was found with the names of one pattern."""
    first, several = pieces[0], len(pieces) > 1
    names = f" ({len(pieces):,} names)" if several else ""
    such = "Such as: " if several and any(each.detail != first.detail for each in pieces) else ""
    named = f" [{first.id}]" if first.id else ""
    return escaped(f"{label}{names}: {first.problem}{named}. {such}{first.detail}")


def _unmade(check: Check) -> list[str]:
    """The id of the finding that a check could not be made, if it could not."""
    return [f"[{check.unchecked}]"] if check.id and not (check.checked or check.status == "ok") else []


def _data(text: str) -> str:
    encoded = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped(encoded)  # other control characters have no code there, and terminals obey them


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
