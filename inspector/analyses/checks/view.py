"""Whether anything is wrong with the checkpoint, with the evidence."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.checks import words, words_loading, words_magnitudes
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks, Status
from inspector.analyses.checks.words_loading import ties
from inspector.report.content import Section
from inspector.view.blocks import Block, Bullets, Sentence, Table
from inspector.view.view import Headline, Tab, Verdict, View

VERDICTS: dict[Status, Verdict] = {"fail": "problem", "warn": "warning"}


def view(checks: Checks, request: CheckRequest, *, name: str) -> View:
    """The verdict, what to do next, all checks, what is loaded as what, all evidence, sizes of weights."""
    word, said = words.verdict(checks)
    verdicts: list[Verdict] = [verdict for status, verdict in VERDICTS.items() if checks.counts[status]]
    return View(
        Headline(f"{word}. {said}", verdicts[0] if verdicts else "ok"),
        beside=tuple(_problems(checks)),
        tabs=(
            Tab("All checks", lambda: _checks(checks)),
            Tab("Evidence", lambda: _evidence(checks)),
            *([Tab(words_loading.TAB, lambda: _loading(checks))] if checks.loading else []),
            *([Tab(words_magnitudes.HEADING, lambda: _norms(checks))] if checks.norms else []),
        ),
    )


def _problems(checks: Checks) -> Iterator[Block]:
    if not_read := words.reading(checks):
        yield Sentence(not_read)
    alarms = [check for check in checks.worst_first() if check.status != "ok"]
    if alarms:
        lines = (f"{check.name} ({check.status}): {check.detail} {check.next_step}" for check in alarms)
        yield Bullets(tuple(lines), "problems")
    if passed := words.passed(checks):
        yield Sentence(passed, "passed")


def _checks(checks: Checks) -> Iterator[Block]:
    from inspector.analyses.checks.frames import check_frame  # half a second of the verb

    yield Table("checks", "All checks, worst first", check_frame(checks))


def _loading(checks: Checks) -> Iterator[Block]:
    from inspector.analyses.checks.frames import loading_frame, tie_frame

    if checks.ties:
        yield Table("ties", ties.TITLE, tie_frame(checks.ties), meanings=ties.MEANINGS)
        yield Bullets(tuple(f"{row.loader}: {row.reason}" for row in checks.ties), "ties by loader")
    yield Table("loading", words_loading.TITLE, loading_frame(checks.loading), meanings=words_loading.MEANINGS)


def _evidence(checks: Checks) -> Iterator[Block]:
    from inspector.analyses.checks.frames import SUBJECT, as_frame

    ordered = checks.worst_first()
    evidence = as_frame(each for check in ordered for each in check.evidence)
    if len(evidence):
        evidence.insert(0, "check", [check.name for check in ordered for _ in check.evidence])
        yield Table("evidence", "Evidence", evidence, by=SUBJECT)


def _norms(checks: Checks) -> Iterator[Block]:
    from inspector.analyses.checks.frames import PATTERN, norm_frame

    yield Sentence(words_magnitudes.table(checks))
    yield Table("norms", words_magnitudes.HEADING, norm_frame(checks.norms), by=PATTERN)


SECTION = Section("checks", ask=lambda _: (CheckRequest(),))
