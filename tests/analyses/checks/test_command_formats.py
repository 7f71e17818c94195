"""What pipelines read of checks: exit status, baselines, GitHub's annotations, JUnit's XML."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from inspector.analyses.checks.command.baseline import compare, read_baseline
from inspector.analyses.checks.command.formats import as_github, as_junit, write_checks
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import (
    SEVERITIES,
    STATUS_OF,
    STATUSES,
    Baseline,
    Check,
    Checks,
    Evidence,
    Severity,
    Status,
)
from inspector.errors import RequestError
from inspector.results.plain import to_json

COMMAND = re.compile(r"::(error|warning|notice) title=([^:,\n]*)::([^\n]*)")


def evidence(subject: str, severity: Severity, count: int | None = None, problem: str = "p") -> Evidence:
    return Evidence(subject, problem, severity, count, f"{subject} in short.")


def check(name: str, *found: Evidence, checked: bool = True, severity: Severity = "none") -> Check:
    worst = SEVERITIES[max(map(SEVERITIES.index, [severity, *(each.severity for each in found)]))]
    step = "" if STATUS_OF[worst] == "ok" else "Mend it."
    return Check(name, STATUS_OF[worst], worst, f"{name} was looked at.", step, checked,
                 len(found), found)  # fmt: skip


def checks(*each: Check, baseline: Baseline | None = None) -> Checks:
    counts: dict[Status, int] = {status: sum(c.status == status for c in each) for status in STATUSES}
    return Checks("tiny", "f" * 64, counts, each, baseline)


NUMBERS = check("Numbers", evidence("a", "critical", 3), evidence("b", "critical", 1))
PICKLES = check("Pickles", evidence("x.bin", "minor"))
FINE = check("Ties", evidence("t", "none"))
NOTED = check("Padding", evidence("row 0", "note"))


def since(now: Checks, before: Checks, folder: Path) -> Checks:
    """Write what an earlier run printed, read it, and compare."""
    file = folder / "baseline.json"
    file.write_text(json.dumps(to_json(before)))
    return dataclasses.replace(now, baseline=compare(now, read_baseline(file)))


def changes(found: Checks) -> list[tuple[str, str, str]]:
    assert found.baseline
    return [(each.change, each.check, each.subject) for each in found.baseline.changes]


# What fails


def test_failures_fail_and_warnings_do_only_when_they_should() -> None:
    found = checks(NUMBERS, PICKLES, FINE, NOTED)
    assert found.failing() == (NUMBERS,)
    assert found.failing(strict=True) == (NUMBERS, PICKLES)
    assert checks(PICKLES, FINE).failing() == ()


# Baselines


def test_what_the_baseline_knows_does_not_fail(tmp_path: Path) -> None:
    now = checks(NUMBERS, PICKLES, FINE)
    found = since(now, now, tmp_path)
    assert found.failing(strict=True) == ()
    assert changes(found) == []
    assert found.baseline
    assert found.baseline.known == 3
    assert (found.baseline.name, found.baseline.fingerprint) == ("tiny", "f" * 64)


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        (evidence("a", "critical", 3), evidence("a", "critical", 4), "worse"),
        (evidence("a", "critical", 3), evidence("a", "critical", 2), "better"),
        (evidence("a", "minor", 3), evidence("a", "major", 3), "worse"),
        (evidence("a", "minor", 3), evidence("a", "major", 2), "worse"),
        (evidence("a", "critical", 3), evidence("a", "major", 3), "better"),
        (evidence("a", "critical", 3, "holds NaN"), evidence("a", "critical", 3, "lacks"), "new"),
        (evidence("a", "note", 3), evidence("a", "major", 3), "new"),
    ],
)
def test_what_is_new_or_worse_fails(before: Evidence, now: Evidence, change: str, tmp_path: Path) -> None:
    found = since(checks(check("Numbers", now)), checks(check("Numbers", before)), tmp_path)
    assert changes(found)[0] == (change, "Numbers", "a")
    assert bool(found.failing()) == (change in ("new", "worse"))


def test_a_new_warning_does_not_fail_where_a_failure_is_known(tmp_path: Path) -> None:
    before = check("Numbers", evidence("a", "critical", 3))
    now = check("Numbers", evidence("a", "critical", 3), evidence("c", "minor"))
    found = since(checks(now), checks(before), tmp_path)
    assert changes(found) == [("new", "Numbers", "c")]
    assert found.failing() == ()
    assert found.failing(strict=True) == (now,)


def test_what_got_better_is_told(tmp_path: Path) -> None:
    before = checks(NUMBERS, PICKLES)
    now = checks(check("Numbers", evidence("a", "critical", 1)), check("Pickles"))
    found = since(now, before, tmp_path)
    assert changes(found) == [
        ("better", "Numbers", "a"), ("gone", "Numbers", "b"), ("gone", "Pickles", "x.bin"),
    ]  # fmt: skip
    assert found.failing(strict=True) == ()


def test_a_check_that_cannot_be_made_any_more_is_new(tmp_path: Path) -> None:
    unmade = check("Ties", checked=False, severity="minor")
    found = since(checks(unmade), checks(FINE), tmp_path)
    assert changes(found) == [("new", "Ties", "")]
    assert found.failing(strict=True) == (unmade,)
    assert changes(since(checks(unmade), checks(unmade), tmp_path)) == []


def test_a_baseline_of_names_and_statuses_alone_is_enough(tmp_path: Path) -> None:
    plain = [{"name": "Numbers", "status": "fail", "detail": ""},
             {"name": "Pickles", "status": "ok", "detail": ""}]  # fmt: skip
    (tmp_path / "old.json").write_text(json.dumps({"checks": plain}))
    now = checks(NUMBERS, PICKLES)
    baseline = compare(now, read_baseline(tmp_path / "old.json"))
    assert [(each.change, each.check) for each in baseline.changes] == [("worse", "Pickles")]
    assert baseline.known == 2


def test_evidence_that_was_not_listed_then_is_not_taken_for_new(tmp_path: Path) -> None:
    many = dataclasses.replace(NUMBERS, found=5_000)
    other = dataclasses.replace(check("Numbers", evidence("z", "critical", 1)), found=5_000)
    assert changes(since(checks(other), checks(many), tmp_path)) == []
    more = dataclasses.replace(other, found=5_001)
    assert changes(since(checks(more), checks(many), tmp_path)) == [("new", "Numbers", "z")]


@pytest.mark.parametrize(
    "content",
    ["[]", "{}", '{"checks": 3}', '{"checks": [{}]}',
     '{"checks": [{"name": "a", "status": "bad"}]}',
     '{"checks": [{"name": "a", "status": "ok", "evidence": [{"subject": "a"}]}]}',
     '{"checks": [{"name": "a", "status": "ok", "severity": "huge"}]}'],
)  # fmt: skip
def test_what_is_no_baseline_is_refused_in_one_sentence(content: str, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(content)
    with pytest.raises(RequestError, match=r"^baseline\.json is not the output of `check --json`: "):
        read_baseline(file)


def test_what_cannot_be_read_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"^The baseline gone\.json cannot be read \(No such"):
        read_baseline(tmp_path / "gone.json")
    (tmp_path / "cut.json").write_text('{"checks": }')
    with pytest.raises(RequestError, match=r"^The baseline cannot be read: cut\.json is not valid"):
        read_baseline(tmp_path / "cut.json")


# GitHub's annotations


def annotated(text: str) -> list[tuple[str, str, str]]:
    """Level, title and message of every workflow command, unescaped as GitHub's runner does."""
    found = [COMMAND.fullmatch(line) for line in text.splitlines() if line.startswith("::")]
    assert all(found)
    return [(m[1], unquote(m[2]), unquote(m[3])) for m in found if m]


def test_each_alarm_is_one_annotation_worst_first() -> None:
    text = as_github(checks(FINE, PICKLES, NUMBERS, NOTED), strict=False)
    assert annotated(text) == [
        ("error", "Numbers (tiny)",
         "Numbers was looked at. Mend it.\na: p. a in short.\nb: p. b in short."),
        ("warning", "Pickles (tiny)",
         "Pickles was looked at. Mend it.\nx.bin: p. x.bin in short."),
    ]  # fmt: skip
    assert text.splitlines()[-1] == "Checkpoint tiny: 4 checks: 2 ok, 1 warn, 1 fail; failed."
    strict = annotated(as_github(checks(PICKLES), strict=True))
    assert [level for level, _, _ in strict] == ["error"]


def test_what_the_baseline_knows_is_a_notice(tmp_path: Path) -> None:
    found = since(checks(NUMBERS), checks(NUMBERS), tmp_path)
    text = as_github(found, strict=False)
    assert [level for level, _, _ in annotated(text)] == ["notice"]
    assert "Since the baseline (tiny): 0 new, 0 worse, 0 better, 0 gone, 2 unchanged." in text


def test_names_of_strangers_cannot_speak_to_the_runner() -> None:
    hostile = "a\n::stop-commands::x\r::error::y%0A,: ##[debug]"
    bad = dataclasses.replace(checks(check("Numbers", evidence(hostile, "critical"))), name=f"n:1,{hostile}")
    text = as_github(bad, strict=False)
    commands = [line for line in text.split("\n") if line.lstrip().startswith("::")]
    assert len(commands) == 1
    assert "\r" not in text
    _, title, message = annotated(text)[0]
    assert title == f"Numbers (n:1,{hostile})"
    assert "a\\n::stop-commands::x\\r::error::y%0A,:" in message
    assert "##[" not in text.splitlines()[-1]


# JUnit


def junit(found: Checks, *, strict: bool = False) -> ElementTree.Element:
    text = as_junit(found, strict=strict)
    assert text.startswith('<?xml version="1.0" encoding="utf-8"?>\n')
    return ElementTree.fromstring(text.encode())


def test_junit_has_one_case_a_check_and_counts_them() -> None:
    unmade = check("Heads", checked=False, severity="minor")
    root = junit(checks(NUMBERS, PICKLES, FINE, unmade))
    (suite,) = root
    assert root.tag == "testsuites"
    for element in (root, suite):
        assert [element.get(key) for key in ("tests", "failures", "errors", "skipped")] == [
            "4", "1", "0", "1",
        ]  # fmt: skip
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert list(cases) == ["Numbers", "Pickles", "Ties", "Heads"]
    failure = cases["Numbers"].find("failure")
    assert failure is not None
    assert failure.text
    assert (failure.get("message"), failure.get("type")) == ("Numbers was looked at.", "critical")
    assert failure.text.splitlines()[1:] == ["Mend it.", "a: p. a in short.", "b: p. b in short."]
    assert cases["Pickles"].find("failure") is None
    assert "warn (minor)" in (cases["Pickles"].findtext("system-out") or "")
    assert cases["Heads"].find("skipped") is not None
    (fingerprint,) = suite.iter("property")
    assert fingerprint.attrib == {"name": "fingerprint", "value": "f" * 64}
    strict = junit(checks(NUMBERS, PICKLES, FINE, unmade), strict=True)
    assert strict.get("failures") == "3"


def test_junit_can_be_parsed_whatever_a_file_names() -> None:
    hostile = "a\x00\x1b]]>&<b>\ud800\ufffe\n\u202e"
    root = junit(checks(check("Numbers", evidence(hostile, "critical"))))
    text = root.findtext("testsuite/testcase/failure") or ""
    assert "a\\x00\\x1b]]>&<b>\\ud800\\ufffe\\n\\u202e: p." in text


# The table


def test_the_table_shows_alarms_with_their_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    many = check("Rows", *(evidence(f"token {n}", "minor") for n in range(25)))
    write_checks(checks(FINE, NUMBERS, many), CheckRequest(), strict=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "✗ Broken. 1 of 3 checks failed, and 1 raised a warning."
    text = "\n".join(lines)
    assert text.index("- Numbers (fail): ") < text.index("- Rows (warn): ") < text.index("1 passed: Ties.")
    assert "- a: p. a in short." in lines
    assert "- … and 15 more: --json lists them." in lines
    assert lines[-1] == "3 checks: 1 ok, 1 warn, 1 fail; failed."


def test_names_alike_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(layer: int, part: str, detail: str) -> Evidence:
        return Evidence(f"layers.{layer}.{part}", "holds NaN", "critical", 1, detail)

    found = [broken(layer, "w", "All of it.") for layer in range(20)]
    found += [broken(layer, "b", f"1 of {layer} numbers.") for layer in range(4, 20)]
    write_checks(checks(check("Numbers", *found)), CheckRequest(), strict=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("Numbers: evidence") + 2 : -2] == [
        "- layers.[0–19].w (20 names): holds NaN. All of it.",
        "- layers.[4–19].b (16 names): holds NaN. Such as: 1 of 4 numbers.",
    ]


def test_what_json_does_not_list_is_not_promised() -> None:
    found = check("Rows", *(evidence(f"token {n}", "critical") for n in range(25)))
    (annotation,) = annotated(as_github(checks(dataclasses.replace(found, found=1_025)), strict=False))
    assert annotation[2].splitlines()[-1] == "… and 1,015 more: --json lists the first 25."


def test_changes_of_names_alike_share_a_line(tmp_path: Path) -> None:
    now = checks(check("Numbers", *(evidence(f"layers.{n}.w", "critical", 1) for n in range(40))))
    text = as_github(since(now, checks(check("Numbers")), tmp_path), strict=False)
    assert text.splitlines()[-2:] == [
        "Since the baseline (tiny): 40 new, 0 worse, 0 better, 0 gone, 0 unchanged.",
        "  new: Numbers: layers.[0–39].w: p (critical, 40 names)",
    ]


def test_githubs_annotations_hold_no_control_characters():
    """A terminal, or a log that is read on one, would obey them."""
    bad = Check("Nu\x1bmbers", "fail", "critical", "a\x00\x1b[2Jb\nc.", "Do\u202e it.", True, 0, ())
    text = as_github(dataclasses.replace(checks(bad), name="ti\x9bny"), strict=False)
    assert all(line.isprintable() for line in text.splitlines())
    assert text.startswith(r"::error title=Nu\x1bmbers (ti\x9bny)::a\x00\x1b[2Jb%0Ac. Do\u202e it.")
