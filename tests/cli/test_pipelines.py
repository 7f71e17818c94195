"""The action for GitHub and the hook for pre-commit: what their files say works as written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM

from inspector.cli.commit_hook import command

ROOT = Path(__file__).parents[2]
DEMOS = ROOT / "inspector/demo"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A demo with a NaN."""
    folder = shutil.copytree(DEMOS / "demo-bert", tmp_path / "broken % ::error::")
    tensors = load_file(folder / "model.safetensors")
    next(iter(tensors.values()))[0] = float("nan")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def run_check(tmp_path: Path, **inputs: str) -> tuple[int, str, str, str]:
    """Run the step as GitHub does: its exit status, what it printed, its summary and its outputs."""
    program = tmp_path / "bin" / "checkpoint-inspector"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m inspector "$@"\n')
    program.chmod(0o755)
    step = next(each for each in ACTION["runs"]["steps"] if each.get("id") == "check")
    environment = {}
    for name, expression in step["env"].items():
        (asked,) = re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", expression).groups()  # pyright: ignore[reportOptionalMemberAccess]
        environment[name] = inputs.get(asked, ACTION["inputs"][asked].get("default", ""))
    summary, outputs = tmp_path / "summary", tmp_path / "outputs"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        env={**os.environ, **environment, "PATH": f"{program.parent}:{os.environ['PATH']}",
             "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs), "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, summary.read_text("utf-8"), outputs.read_text("utf-8")


def test_the_action_passes_a_sound_checkpoint_and_writes_its_report(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    checkpoint = f"\n{DEMOS / 'demo-bert'}\n"
    status, _, summary, outputs = run_check(tmp_path, checkpoint=checkpoint, report=str(report))
    assert (status, outputs) == (0, "status=0\n")
    assert "None of 18 checks found anything wrong." in summary
    assert report.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_the_action_annotates_what_is_wrong_and_fails(tmp_path: Path, broken: Path) -> None:
    status, printed, summary, outputs = run_check(tmp_path, checkpoint=f"{broken}\n{DEMOS / 'demo-bert'}")
    assert (status, outputs) == (1, "status=1\n")
    errors = [line for line in printed.splitlines() if line.startswith("::error ")]
    assert len(errors) == 1
    assert "NaN" in errors[0]
    assert "NaN and infinity" in summary


def test_options_reach_the_command(tmp_path: Path, broken: Path) -> None:
    inputs = {"checkpoint": str(broken), "options": "--values none --strict"}
    status, _, summary, _ = run_check(tmp_path, **inputs)
    assert status == 0
    assert "Only headers were read." in summary


def test_the_action_installs_what_the_package_is_called() -> None:
    steps: list[dict[str, Any]] = ACTION["runs"]["steps"]
    assert steps[0]["run"] == 'python -m pip install --quiet "$PACKAGE"'
    assert ACTION["inputs"]["package"]["default"] == "checkpoint-inspector[models]"
    assert all(each["shell"] == "bash" for each in steps if "run" in each)


@pytest.mark.parametrize(
    ("name", "is_ours"),
    [
        ("model.safetensors", True), ("run/checkpoint-5/model-00001-of-00002.safetensors", True),
        ("model.safetensors.index.json", True), ("a/config.json", True), ("config.json", True),
        ("a/tokenizer.json", True), ("x.gguf", True), ("pytorch_model.bin", True), ("cat.png", False),
        ("my_config.json", False), ("package.json", False), ("model.safetensors.md", False),
    ],
)  # fmt: skip
def test_the_hook_looks_at_files_of_checkpoints(name: str, is_ours: bool) -> None:
    assert bool(re.search(HOOK["files"], name)) is is_ours


def test_the_hook_checks_each_folder_once_shards_together(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=16,
    )  # fmt: skip
    model = BertForMaskedLM(config)
    model.save_pretrained(tmp_path / "a b", max_shard_size="60KB")
    files = sorted(map(str, (tmp_path / "a b").iterdir()))
    assert len(files) == 4
    words = [*HOOK["args"], *files]
    assert command(words) == [sys.executable, "-m", "inspector", "check", "--values", "none", str(tmp_path / "a b")]
    module = HOOK["entry"].split()[1:]
    done = subprocess.run([sys.executable, *module, *words], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, "Only headers were read." in done.stdout) == (0, True), done
