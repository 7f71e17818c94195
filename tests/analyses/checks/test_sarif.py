"""What code scanning reads of checks: SARIF 2.1.0, held against sarif-pydantic's classes."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from pydantic import BaseModel
from sarif_pydantic import Sarif

from inspector.analyses.checks.command.many import FORMATS
from inspector.analyses.checks.command.sarif import as_sarif
from inspector.analyses.checks.result import Checks
from inspector.results.findings import KNOWN, TABLE
from inspector.results.plain import to_json
from tests.analyses.checks.test_command_formats import FINE, NOTED, check, checks, evidence, since

NAN = dataclasses.replace(
    check("NaN and infinity", dataclasses.replace(evidence("a.weight", "critical", 3), id="values.nan")), id="values"
)
PICKLE = dataclasses.replace(
    check("Pickle formats", dataclasses.replace(evidence("x.bin", "minor"), id="pickles.file")), id="pickles"
)
UNMADE = dataclasses.replace(check("Zero rows", checked=False, severity="minor"), id="zero-rows")


# What the standard has, and these classes lack: sections 3.27.23, 3.27.24 and 3.20.21.
LACKED = {"suppressions", "baselineState", "toolExecutionNotifications"}


def sarif(*found: tuple[str, Checks | str], strict: bool = False) -> list[dict[str, Any]]:
    """The runs, once they are known to be what the standard has."""
    text = as_sarif(found or [("tiny", checks(NAN, PICKLE, FINE, NOTED, UNMADE))], strict=strict)
    assert not unknown(Sarif.model_validate_json(text))
    return json.loads(text)["runs"]


def unknown(value: object) -> list[str]:
    """Names that the standard's classes do not have, wherever in a value."""
    if isinstance(value, list):
        return [name for each in value for name in unknown(each)]
    if not isinstance(value, BaseModel):
        return []
    inside = [name for field in type(value).model_fields for name in unknown(getattr(value, field))]
    return [*(name for name in value.model_extra or () if name not in LACKED), *inside]


def test_each_piece_of_evidence_that_counts_is_a_result_of_its_rule() -> None:
    (run,) = sarif()
    found = {each["ruleId"]: each for each in run["results"]}
    assert {rule: each["level"] for rule, each in found.items()} == {
        "values.nan": "error", "pickles.file": "warning", "zero-rows.unchecked": "warning",
    }  # fmt: skip
    assert [run["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] for each in run["results"]] == [*found]
    assert set(found) <= KNOWN
    assert found["values.nan"]["message"]["text"] == "a.weight: p. a.weight in short. Mend it."
    (place,) = found["values.nan"]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "tiny"
    assert place["logicalLocations"] == [{"fullyQualifiedName": "a.weight"}]
    assert run["properties"]["fingerprint"] == "f" * 64


def test_a_rule_has_the_words_of_the_table() -> None:
    (run,) = sarif()
    rule = next(each for each in run["tool"]["driver"]["rules"] if each["id"] == "values.nan")
    kind = next(each for each in TABLE if each.id == "values.nan")
    assert kind.meaning in rule["shortDescription"]["text"]
    assert rule["help"]["text"] == kind.action


def test_strict_makes_errors_and_what_is_accepted_is_suppressed() -> None:
    found = dataclasses.replace(checks(NAN, PICKLE, UNMADE), accepted=("pickles.file", "zero-rows.unchecked"))
    (run,) = sarif(("tiny", found), strict=True)
    by_rule = {each["ruleId"]: each for each in run["results"]}
    assert by_rule["pickles.file"]["suppressions"] == [{"kind": "external"}]
    assert "suppressions" not in by_rule["values.nan"]
    assert by_rule["pickles.file"]["level"] == "error"
    assert by_rule["zero-rows.unchecked"]["suppressions"] == [{"kind": "external"}]


def test_a_baseline_says_what_is_new(tmp_path) -> None:
    (run,) = sarif(("tiny", since(checks(NAN, PICKLE), checks(PICKLE), tmp_path)))
    states = {each["ruleId"]: each["baselineState"] for each in run["results"]}
    assert states == {"values.nan": "new", "pickles.file": "unchanged"}


@pytest.mark.parametrize("name", ["a b/ü#?%", "\u202ereversed", "hub:org/model"])
def test_a_checkpoint_that_gave_no_answer_is_a_run_that_failed_and_names_are_quoted(capsys, name) -> None:
    lines = [
        {"checkpoint": name, "status": "done", "result": to_json(checks(NAN))},
        {"checkpoint": "gone", "status": "refused", "error": "It is not there."},
    ]
    FORMATS["sarif"](lines, strict=False)
    text = capsys.readouterr().out
    assert text.isascii()
    assert not unknown(Sarif.model_validate_json(text))
    done, refused = json.loads(text)["runs"]
    assert done["automationDetails"]["id"] != refused["automationDetails"]["id"] == "gone/"
    (found,) = done["results"]
    uri = found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.isascii()
    assert not set(uri) & set(" #?\\")
    (invocation,) = refused["invocations"]
    assert (invocation["executionSuccessful"], refused["results"]) == (False, [])
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "It is not there."
