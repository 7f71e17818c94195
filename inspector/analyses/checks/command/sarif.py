"""Write checks as SARIF 2.1.0, which code scanning of GitHub and others reads.

See OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0". Each checkpoint is a run, each piece of
evidence that counts a result, and each kind of finding a rule, with its text of docs/findings.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import inspector
from inspector.analyses.checks.result import REPORTED, STATUS_OF, Check, Checks, Evidence
from inspector.program import DISTRIBUTION
from inspector.results.findings import TABLE

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
VERSION = "2.1.0"
KINDS = {each.id: each for each in TABLE}
STATES = {"new": "new", "worse": "updated", "better": "updated"}  # of what a baseline compares; the rest is unchanged
LEVELS = {"fail": "error", "warn": "warning"}


def as_sarif(found: Sequence[tuple[str, Checks | str]], *, strict: bool) -> str:
    """Write what came of one or more checkpoints.

    Args:
        found: Of each its name, and its checks, or the sentence that says why there are none.
        strict: Warnings are errors.
    """
    runs = [
        {**_run(name, each, strict=strict), "automationDetails": {"id": f"{quote(name)}/"}}  # or GitHub refuses several
        for name, each in found
    ]
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": runs}, indent=2) + "\n"


def _run(name: str, found: Checks | str, *, strict: bool) -> dict[str, Any]:
    driver: dict[str, Any] = {"name": DISTRIBUTION, "semanticVersion": inspector.__version__}
    if isinstance(found, str):
        told = {"level": "error", "message": {"text": found}}
        refused = {"executionSuccessful": False, "toolExecutionNotifications": [told]}
        return {"tool": {"driver": driver}, "invocations": [refused], "results": []}
    results = list(_results(name, found, strict=strict))
    rules = dict.fromkeys(each["ruleId"] for each in results)
    for place, rule in enumerate(rules):
        for each in results:
            if each["ruleId"] == rule:
                each["ruleIndex"] = place
    driver["rules"] = [_rule(rule) for rule in rules]
    return {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True}],
        "results": results,
        "properties": {"fingerprint": found.fingerprint},
    }


def _rule(rule: str) -> dict[str, Any]:
    kind = KINDS.get(rule)
    if kind is None:
        return {"id": rule}
    text = {"shortDescription": {"text": f"{kind.check}: {kind.meaning}"}}
    return {"id": rule, **text, **({"help": {"text": kind.action}} if kind.action else {})}


def _results(name: str, checks: Checks, *, strict: bool) -> Iterator[dict[str, Any]]:
    compared = checks.baseline.changes if checks.baseline else ()
    changes = {(each.check, each.subject, each.problem): each.change for each in compared}
    for check in checks.worst_first():
        for each in check.evidence:
            if each.severity in REPORTED:
                level = "error" if strict else LEVELS[STATUS_OF[each.severity]]
                found = _result(name, each.id or check.id, level, _told(check, each), subject=each.subject)
                found |= _suppressed(each.id, checks)
                if checks.baseline:
                    change = changes.get((check.name, each.subject, each.problem), "")
                    found["baselineState"] = STATES.get(change, "unchanged")
                yield found
        if check.id and not check.checked and check.status != "ok":
            found = _result(name, check.unchecked, "warning", check.detail, subject="")
            yield found | _suppressed(check.unchecked, checks)


def _suppressed(rule: str, checks: Checks) -> dict[str, Any]:
    return {"suppressions": [{"kind": "external"}]} if rule in checks.accepted else {}


def _told(check: Check, each: Evidence) -> str:
    return " ".join(part for part in (f"{each.subject}: {each.problem}.", each.detail, check.next_step) if part)


def _result(name: str, rule: str, level: str, text: str, *, subject: str) -> dict[str, Any]:
    place: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": quote(name)}}}
    if subject:
        place["logicalLocations"] = [{"fullyQualifiedName": subject}]
    return {"ruleId": rule, "level": level, "message": {"text": text}, "locations": [place]}
