"""What checks are made of: evidence, and the conclusion that it allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from inspector.analyses.checks import words, words_magnitudes
from inspector.analyses.checks.result import SEVERITIES, STATUS_OF, Check, Evidence, Status
from inspector.results.findings import CHECK_IDS, id_of

# Checks that read numbers.
NUMBERS, ZEROS, SCALES = "NaN and infinity", "Zero tensors", "Quantization scales"
MAGNITUDES, PADDING = words_magnitudes.HEADING, "Padding"
MOST = 100_000  # pieces of evidence that a check lists: DeepSeek-V3 has 90,427 tensors
RANK: dict[str, int] = {severity: place for place, severity in enumerate(SEVERITIES)}


def conclude(name: str, evidence: Iterable[Evidence], detail: str, next_step: str = "") -> Check:
    """Make a check of its evidence.

    Args:
        next_step: One sentence; left out where the status is "ok".
    """
    found = sorted(evidence, key=lambda each: -RANK[each.severity])
    severity = found[0].severity if found else "none"
    status = STATUS_OF[severity]
    return Check(
        name=name,
        status=status,
        severity=severity,
        detail=detail,
        next_step="" if status == "ok" else next_step,
        checked=True,
        found=len(found),
        evidence=tuple(replace(each, id=id_of(name, each.problem)) for each in found[:MOST]),
        id=CHECK_IDS[name],
    )


def nothing_to_check(name: str, why: str) -> Check:
    """A check of something that the checkpoint does not bring, which is no defect."""
    return _unmade(name, "ok", words.NOTHING.format(why))


def not_read(name: str) -> Check:
    """A check that needs numbers, where none were to be read."""
    return _unmade(name, "ok", words.NOT_CHECKED.format(words.NO_NUMBERS))


def not_checked(name: str, why: str, next_step: str = words.CHECK_AGAIN) -> Check:
    """A check that a defect keeps from being made, which another check says, or codes that nobody here can read."""
    return _unmade(name, "warn", words.NOT_CHECKED.format(why), next_step)


def _unmade(name: str, status: Status, detail: str, next_step: str = "") -> Check:
    severity = "note" if status == "ok" else "minor"
    return Check(name, status, severity, detail, next_step, checked=False, found=0, evidence=(), id=CHECK_IDS[name])


def at_least(severity: str, evidence: Iterable[Evidence]) -> list[Evidence]:
    """The evidence that is as bad as that, or worse."""
    return [each for each in evidence if RANK[each.severity] >= RANK[severity]]
