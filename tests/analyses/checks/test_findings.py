"""Findings: each has an id that is documented, can be accepted, and is what every format names."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from inspector.analyses.checks import words_loading
from inspector.analyses.checks.command.baseline import compare, read_baseline
from inspector.analyses.checks.command.formats import as_github, as_junit
from inspector.analyses.checks.compute import ORDER
from inspector.analyses.checks.compute_parts import conclude, not_checked, nothing_to_check
from inspector.analyses.checks.result import STATUSES, Check, Checks, Evidence, read_checks
from inspector.analyses.sharing import result as sharing
from inspector.models.vocabulary import ends
from inspector.results.findings import CHECK_IDS, IDS, KNOWN, TABLE, id_of
from inspector.results.plain import to_json
from inspector.store.manifests.findings import PROBLEMS
from tools.findings_page import FILE, page

ROOT = Path(__file__).parents[3]
NAN = Evidence("w", "holds NaN", "critical", 1, "1 of 4 numbers is NaN.")
INFINITY = Evidence("v", "holds infinity", "critical", 1, "1 of 4 numbers is infinite.")
BROKEN = conclude("NaN and infinity", [NAN, INFINITY], "Numbers are not finite.", "Look at them.")
UNMADE = not_checked("Ties", "no class was built.")
ABSENT = nothing_to_check("Padding", "there is none.")


def checks(*each: Check, accepted: tuple[str, ...] = ()) -> Checks:
    counted = Counter(check.status for check in each)
    return Checks("tiny", "f" * 64, {status: counted[status] for status in STATUSES}, each, accepted=accepted)


def problems(path: Path) -> Iterator[str]:
    """The words of evidence and faults that a module writes as they are."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="Evidence"), args=[_, ast.Constant(value=str(words)), *_]):
                yield words
            case ast.Call(func=ast.Name(id="Fault"), args=[ast.Constant(value=str(words)), *_]):
                yield words


def test_the_page_is_what_the_table_says():
    assert FILE.read_text("utf-8") == page(), "run python -m tools.findings_page"


def test_every_check_has_an_id_and_every_finding_one_of_its_own():
    assert tuple(CHECK_IDS) == ORDER
    assert len({*CHECK_IDS.values()}) == len(ORDER)
    assert len({each.id for each in TABLE}) == len(IDS) == len(TABLE)
    assert {each.check for each in TABLE} == {*ORDER}


def test_whatever_a_check_can_say_is_in_the_table():
    files = [*(ROOT / "inspector/analyses/checks").glob("compute*.py"), ROOT / "inspector/models/incomplete.py"]
    written = {words for path in files for words in problems(path)}
    assert len(written) > 20
    told = {each.problem for each in TABLE}
    assert written <= told
    assert {*PROBLEMS} <= {each.problem for each in TABLE if each.check == "Files"}
    assert {*get_args(sharing.Verdict)} <= {each.problem for each in TABLE if each.check == "Ties"}
    of_ends = (ends.GOES_ON, ends.TWICE, ends.TWO_IDS, ends.TWO_TOKENS, ends.TWO_TEMPLATES, ends.PADDING_ENDS)
    assert {*of_ends} == {each.problem for each in TABLE if each.check == "Stopping"}
    assert {*words_loading.STEPS} == {each.problem for each in TABLE if each.check == "Loading"}


def test_words_without_a_row_are_refused_but_where_any_words_may_come():
    assert id_of("Files", "config.json") == "files.noted"
    with pytest.raises(KeyError):
        id_of("Ties", "a new thing")


def test_a_finding_has_its_id_in_every_format():
    found = checks(BROKEN, UNMADE, ABSENT)
    plain = to_json(found)
    assert [each["id"] for each in plain["checks"]] == ["values", "ties", "padding"]
    assert [each["id"] for each in plain["checks"][0]["evidence"]] == ["values.nan", "values.infinity"]
    assert read_checks(plain).checks == found.checks
    github = as_github(found, strict=False)
    assert "w: holds NaN [values.nan]. 1 of 4 numbers is NaN." in github
    assert "::warning title=Ties (tiny) [ties.unchecked]::" in github
    junit = as_junit(found, strict=True)
    assert "v: holds infinity [values.infinity]." in junit
    assert "[ties.unchecked]" in junit
    assert "padding.unchecked" not in github + junit


@pytest.mark.parametrize(
    ("accepted", "fails"),
    [
        ((), True),
        (("values.nan",), True),
        (("values.infinity", "zeros.tensor"), True),
        (("values.nan", "values.infinity"), False),
    ],
)
def test_a_check_fails_until_all_that_it_found_is_accepted(accepted, fails):
    found = checks(BROKEN, accepted=accepted)
    assert bool(found.failing()) == bool(found.failing(strict=True)) == fails
    level = "error" if fails else "notice"
    text = as_github(found, strict=False)
    assert text.startswith(f"::{level} title=NaN and infinity")
    for each in accepted:
        assert f"{each} ({'0 findings' if each.startswith('zeros') else '1 finding'})" in text


def test_findings_that_are_not_listed_are_not_accepted():
    cut = dataclasses.replace(BROKEN, found=3)
    assert checks(cut, accepted=("values.nan", "values.infinity")).failing() == (cut,)


def test_what_could_not_be_made_is_not_judged_and_can_be_accepted():
    found = checks(UNMADE, ABSENT)
    assert found.failing() == ()
    assert found.unjudged() == (UNMADE,)
    assert "could not be judged.\nNot judged: Ties." in as_github(found, strict=False)
    assert found.failing(strict=True) == (UNMADE,)
    accepted = dataclasses.replace(found, accepted=("ties.unchecked",))
    assert accepted.unjudged() == accepted.failing(strict=True) == ()


def test_a_baseline_keeps_what_was_accepted_and_what_could_not_be_made(tmp_path):
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps(to_json(checks(UNMADE, accepted=("values.nan", "values.infinity")))))
    earlier = read_baseline(file)
    assert earlier.accepted == ("values.nan", "values.infinity")
    now = checks(BROKEN, UNMADE)
    baseline = compare(now, earlier)
    judged = dataclasses.replace(now, baseline=baseline, accepted=earlier.accepted)
    assert judged.failing() == ()  # new since then, and accepted
    assert judged.unjudged() == ()  # as it was
    assert dataclasses.replace(judged, accepted=()).failing() == (BROKEN,)
    assert {each.id for each in baseline.changes} == {"values.nan", "values.infinity"}


def test_every_id_is_a_dotted_word():
    assert all(each.replace(".", "").replace("-", "").isalnum() and "." in each for each in KNOWN)
