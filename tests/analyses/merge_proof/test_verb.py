"""The verb's JSON and exit status, for pipelines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner, Result

from inspector.cli.main import app
from inspector.demo import DEMOS
from tests.merges import write_merge

BASE = str(DEMOS["demo-bert"].folder)
KEYS = {"verdict", "procedure", "coefficient", "tensors", "dropped"}


@pytest.fixture
def verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("INSPECTOR_HOME", str(tmp_path / "home"))
    return lambda *words: CliRunner().invoke(app, ["verify-merge", *map(str, words)])


def test_it_exits_with_0_for_a_merge_and_1_without(verify, tmp_path):
    adapter, merged = write_merge(Path(BASE), tmp_path)
    done = verify(BASE, adapter, merged, "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["verdict"], found["procedure"]) == (0, "merged", "P1")
    assert found.keys() >= KEYS
    assert found["tensors"][0].keys() >= {"name", "targeted", "verdict", "procedure", "coefficient"}
    done = verify(BASE, adapter, BASE, "--json")
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (1, "not merged")


def test_it_exits_with_3_where_nothing_can_be_judged(verify, tmp_path):
    adapter, merged = write_merge(Path(BASE), tmp_path)
    state = load_file(adapter / "adapter_model.safetensors")
    save_file(
        {name: torch.full_like(each, torch.nan) for name, each in state.items()}, adapter / "adapter_model.safetensors"
    )
    done = verify(BASE, adapter, merged, "--json")
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (3, "not checkable")


def test_a_refusal_is_one_sentence_that_names_the_checkpoint(verify, tmp_path):
    adapter, _ = write_merge(Path(BASE), tmp_path)
    done = verify(BASE, adapter, tmp_path / "nowhere")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "nowhere" in done.stderr
    assert done.stderr.count("\n") == 1
    done = verify(BASE, adapter, BASE, "--rows", "some")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "--rows: Rows of each matrix must be 64 or all, not 'some'.\n"
