"""Sentences about all checks, and about one that was not made; words_* has those of each check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from inspector.analyses.checks.result import Baseline, Checks
from inspector.names import group_names
from inspector.text import plural

LISTED = 10  # changes since the baseline
READING = {
    "sample": "Only a sample of the stored numbers was read. To read every number, choose all values.",
    "none": "Only headers were read. To read every number, choose all values.",
}
NOTHING = "Nothing to check: {}"
NOT_CHECKED = "Not checked: {}"
NO_MODEL = "no model can be built from these weights as they are."
NO_NUMBERS = "no numbers were read."
CHECK_A_COPY = "Check a copy of the weights in float32, bfloat16 or float16."
CHECK_THE_ORIGINAL = "Check the checkpoint that it was made from."
INSTALL_IT = "Install it, then check again."
CHECK_AGAIN = "Fix the problem above, then check again."
PIPELINE = (
    "If a check fails, the command exits with status 1, which stops a pipeline; if none fails but one could not be "
    "made, with status 3. With --baseline, only problems that are new or worse than in an earlier run count. With "
    "--accept and a finding's id, such as values.nan, findings of this kind do not count. With --strict, warnings "
    "count as failures, too. --format writes GitHub annotations, or JUnit XML for other pipelines."
)


def verdict(checks: Checks) -> tuple[str, str]:
    """The result in a word, and in a sentence."""
    counts, asked = checks.counts, plural(len(checks.checks), "check")
    if counts["fail"]:
        return "Broken", f"{counts['fail']} of {asked} failed, and {counts['warn']} raised a warning."
    if counts["warn"]:
        return "Worth a look", f"{counts['warn']} of {asked} raised a warning; none failed."
    return "Sound", f"None of {asked} found anything wrong."


def passed(checks: Checks) -> str:
    """Which checks passed, and which could not be made; "" where none did."""
    fine = [check.name for check in checks.checks if check.status == "ok" and check.checked]
    left = [check.name for check in checks.checks if check.status == "ok" and not check.checked]
    said = [f"{len(fine)} passed: {', '.join(fine)}."] if fine else []
    return " ".join([*said, *([f"{len(left)} could not be made: {', '.join(left)}."] if left else [])])


def reading(checks: Checks) -> str:
    """Which numbers were not read; "" where all were."""
    return READING.get(checks.values, "")


def summary(checks: Checks, *, strict: bool) -> Iterator[str]:
    """The result in one line for a pipeline, and what changed since the baseline."""
    counts = ", ".join(f"{count} {status}" for status, count in checks.counts.items())
    failing = checks.failing(strict=strict)
    unjudged = checks.unjudged()
    result = "failed" if failing else "could not be judged" if unjudged else "passed"
    yield f"{len(checks.checks)} checks: {counts}; {result}."
    if unjudged:
        yield f"Not judged: {', '.join(check.name for check in unjudged)}."
    if checks.accepted:
        yield f"Accepted, so not counted: {', '.join(_accepted(checks))}."
    if reading(checks):
        yield reading(checks)
    if checks.baseline:
        yield from _changes(checks.baseline)


def _accepted(checks: Checks) -> Iterator[str]:
    """The ids that are accepted, and how often each was found."""
    found = Counter(each.id for check in checks.checks for each in check.evidence)
    found.update(check.unchecked for check in checks.checks if not (check.checked or check.status == "ok"))
    return (f"{each} ({plural(found[each], 'finding')})" for each in checks.accepted)


def _changes(baseline: Baseline) -> Iterator[str]:
    counted = {
        kind: sum(each.change == kind for each in baseline.changes) for kind in ("new", "worse", "better", "gone")
    }
    words = ", ".join(f"{count:,} {kind}" for kind, count in counted.items())
    yield f"Since the baseline ({baseline.name}): {words}, {baseline.known:,} unchanged."
    kinds = [(each.change, each.check, each.problem, each.severity) for each in baseline.changes]
    groups = group_names([each.subject for each in baseline.changes], kinds)
    for group in groups[:LISTED]:
        change, check, problem, severity = kinds[group.places[0]]
        what = f"{group.label}: " if group.label else ""
        names = f", {len(group.places):,} names" if len(group.places) > 1 else ""
        yield f"  {change}: {check}: {what}{problem} ({severity}{names})"
    if rest := sum(len(group.places) for group in groups[LISTED:]):
        yield f"  … and {rest:,} more: --json lists them."


def such_as(count: int, first: str) -> str:
    """The one thing, or the first of several, in parentheses."""
    return f"({'such as ' if count > 1 else ''}{first})"
