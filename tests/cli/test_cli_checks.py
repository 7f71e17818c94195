"""`check` on the command line: its formats, its exit status, and what a baseline knows already."""

from __future__ import annotations

import json
import shutil
from xml.etree import ElementTree

import pytest
from safetensors.numpy import load_file, save_file

from inspector.analyses.checks.compute import ORDER
from inspector.demo import DEMOS


@pytest.fixture
def damaged(tmp_path):
    """A demo with a NaN, and the name of its tensor."""
    folder = tmp_path / "damaged"
    shutil.copytree(DEMOS["demo-gpt2"].folder, folder)
    state = load_file(folder / "model.safetensors")
    name = "transformer.h.0.mlp.c_fc.weight"
    state[name][1, 2] = float("nan")
    save_file(state, folder / "model.safetensors")
    return folder, name


def test_a_failed_check_is_status_1_in_every_format(call, damaged):
    folder, name = damaged
    status, stdout, stderr = call("check", str(folder), "--json")
    assert (status, stderr) == (1, "")
    (bad,) = [each for each in json.loads(stdout)["checks"] if each["status"] == "fail"]
    assert [each["subject"] for each in bad["evidence"]] == [name]
    status, stdout, _ = call("check", str(folder), "--format", "github")
    assert status == 1
    assert stdout.startswith("::error title=NaN and infinity (damaged)::1 tensor holds NaN")
    assert stdout.splitlines()[-1].startswith("Checkpoint damaged: ")
    status, stdout, _ = call("check", str(folder), "--format", "junit")
    assert status == 1
    assert ElementTree.fromstring(stdout.encode()).get("failures") == "1"
    status, stdout, _ = call("check", str(folder))
    assert status == 1
    assert stdout.splitlines()[-1] == f"{len(ORDER)} checks: {len(ORDER) - 1} ok, 0 warn, 1 fail; failed."


def test_a_baseline_keeps_what_is_known_from_failing(call, damaged, tmp_path):
    folder, name = damaged
    file = tmp_path / "baseline.json"
    file.write_text(call("check", str(folder), "--json")[1])
    status, stdout, _ = call("check", str(folder), "--baseline", str(file), "--json")
    assert status == 0
    assert json.loads(stdout)["baseline"]["changes"] == []
    file.write_text(call("check", "demo-gpt2", "--json")[1])
    status, stdout, _ = call("check", str(folder), "--baseline", str(file), "--json")
    assert status == 1
    (change,) = json.loads(stdout)["baseline"]["changes"]
    assert (change["change"], change["subject"]) == ("new", name)


def test_warnings_fail_only_when_they_should(call, damaged):
    folder, _ = damaged
    state = load_file(DEMOS["demo-gpt2"].folder / "model.safetensors")
    save_file(state | {"spare": state["transformer.ln_f.bias"] + 1}, folder / "model.safetensors")
    assert call("check", str(folder), "--json")[0] == 0
    assert call("check", str(folder), "--json", "--strict")[0] == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--format", "xml"), "Unknown format 'xml': use one of table, json, github, junit, sarif."),
        (("--json", "--format", "junit"), "--json and --format junit cannot be combined: use one of them."),
        (("--baseline", "no-such.json"), "The baseline no-such.json cannot be read (No such file "
         "or directory): name a file that `check --json` wrote."),
    ],
)  # fmt: skip
def test_what_check_cannot_do_is_one_sentence_and_status_2(call, options, sentence):
    assert call("check", "demo-bert", *options) == (2, "", f"{sentence}\n")


def test_what_is_accepted_is_no_failure_and_stays_accepted_in_the_baseline(call, damaged, tmp_path):
    folder, _ = damaged
    status, stdout, _ = call("check", str(folder), "--accept", "values.nan")
    assert status == 0
    assert "Accepted, so not counted: values.nan (1 finding)." in stdout
    assert "holds NaN [values.nan]" in stdout
    status, stdout, _ = call("check", str(folder), "--accept", "values.nan", "--json")
    assert (status, json.loads(stdout)["accepted"]) == (0, ["values.nan"])
    file = tmp_path / "baseline.json"
    clean = json.loads(call("check", "demo-gpt2", "--json")[1])
    file.write_text(json.dumps(clean | {"accepted": ["values.nan"]}))
    assert call("check", str(folder), "--baseline", str(file), "--json")[0] == 0
    assert call("check", str(folder), str(folder), "--accept", "values.nan", "--json")[0] == 0
    assert call("check", str(folder), str(folder), "--json")[0] == 1


def test_a_check_that_cannot_be_made_is_status_3(call, tmp_path):
    folder = tmp_path / "unknown"
    shutil.copytree(DEMOS["demo-gpt2"].folder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "no-such-kind"}))
    status, stdout, _ = call("check", str(folder), "--json")
    unmade = {each["id"] for each in json.loads(stdout)["checks"] if not each["checked"] and each["status"] == "warn"}
    assert (status, unmade) == (3, {"loading", "weights", "leftover", "ties"})
    options = [part for each in unmade for part in ("--accept", f"{each}.unchecked")]
    assert call("check", str(folder), *options, "--json")[0] == 0
    assert call("check", str(folder), "demo-gpt2", "--json")[0] == 3


def test_an_unknown_finding_is_refused(call):
    assert call("check", "demo-bert", "--accept", "values.nann") == (
        2, "", "No check has a finding 'values.nann': docs/findings.md lists them, such as values.nan.\n",
    )  # fmt: skip
