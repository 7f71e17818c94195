"""A base and an adapter in one command: the answer is the merged model's, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from inspector.cli.main import app
from inspector.demo import DEMOS
from tests.merges import write_merge

BASE = str(DEMOS["demo-bert"].folder)
TEXT = "the capital and largest city of [MASK]."


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("INSPECTOR_HOME", str(tmp_path / "home"))
    torch.manual_seed(0)  # of the adapters
    return lambda *words: CliRunner().invoke(app, [*map(str, words)])


def test_a_verb_answers_for_both(call, tmp_path):
    adapter, merged = write_merge(Path(BASE), tmp_path)
    asked = ("--text", TEXT, "--json")
    both, whole, plain = (
        json.loads(call("predict", *words, *asked).stdout)["masks"]
        for words in ((BASE, "--adapter", adapter), (merged,), (BASE,))
    )
    numbers = [[each["probability"] for each in found[0]["predictions"]] for found in (both, whole, plain)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-5)
    assert numbers[0] != pytest.approx(numbers[2], rel=1e-3)
    found = json.loads(call("compare", BASE, BASE, "--adapter", adapter, "--json").stdout)
    changed = [tensor["name"] for tensor in found["tensors"] if tensor["status"] == "changed"]
    assert changed
    assert all(name.endswith("query.weight") for name in changed)
    checked = json.loads(call("check", BASE, "--adapter", adapter, "--json").stdout)
    assert {check["name"] for check in checked["checks"] if check["status"] == "fail"} == set()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "home") == ["adapter", "merged"]


def test_a_report_is_about_both(call, tmp_path):
    adapter, _ = write_merge(Path(BASE), tmp_path)
    output = tmp_path / "report.html"
    done = call("report", BASE, "--adapter", adapter, "-o", output, "--sections", "overview", "--json")
    assert done.exit_code == 0, done.stderr
    page = output.read_text("utf-8")
    assert "demo-bert + adapter" in page
    assert "report demo-bert --adapter=adapter -o report.zip" in page


def test_an_adapter_goes_on_one_checkpoint(call, tmp_path):
    adapter, _ = write_merge(Path(BASE), tmp_path)
    done = call("check", BASE, BASE, "--adapter", adapter)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "--adapter goes with a single checkpoint: name one.\n"
    done = call("overview", BASE, "--adapter", BASE)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("demo-bert is a whole model, not an adapter")
    done = call("overview", BASE, "--adapter", tmp_path / "nowhere")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
