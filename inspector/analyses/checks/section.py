"""Whether anything is wrong with the checkpoint, with the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from inspector.analyses.checks import words, words_magnitudes
from inspector.analyses.checks.frames import PATTERN, SUBJECT, as_frame, norm_frame
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks
from inspector.report.content import Block, Context, Listed, Said, Section, Tabled


def show(_: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """The result in a sentence, what to do next, all checks, all evidence, sizes of weights."""
    checks: Checks = answers[0]
    word, said = words.verdict(checks)
    yield Said(f"{word}. {said}")
    if not_read := words.reading(checks):
        yield Said(not_read)
    ordered = checks.worst_first()
    alarms = [check for check in ordered if check.status != "ok"]
    if alarms:
        yield Listed(tuple(f"{check.name} ({check.status}): {check.detail} {check.next_step}" for check in alarms))
    yield Tabled(
        "checks",
        "All checks, worst first",
        pd.DataFrame(
            {"check": check.name, "status": check.status, "severity": check.severity, "found": check.detail}
            for check in ordered
        ),
    )
    evidence = as_frame(each for check in ordered for each in check.evidence)
    if len(evidence):
        evidence.insert(0, "check", [check.name for check in ordered for _ in check.evidence])
        yield Tabled("evidence", "Evidence", evidence, by=SUBJECT)
    if checks.norms:
        yield Said(words_magnitudes.table(checks))
        yield Tabled("norms", words_magnitudes.HEADING, norm_frame(checks.norms), by=PATTERN)


SECTION = Section("checks", ask=lambda _: (CheckRequest(),), show=show)
