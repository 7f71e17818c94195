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

from inspector.cli import commit_hook
from inspector.cli.commit_hook import command, main

ROOT = Path(__file__).parents[1]
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


def test_a_refused_checkpoint_has_its_status_although_no_report_is_made(tmp_path: Path) -> None:
    status, printed, _, outputs = run_check(tmp_path, checkpoint=str(tmp_path), report=str(tmp_path / "r.html"))
    assert (status, outputs) == (2, "status=2\n"), printed


def test_options_reach_the_command(tmp_path: Path, broken: Path) -> None:
    inputs = {"checkpoint": str(broken), "options": "--values none --strict"}
    status, _, summary, _ = run_check(tmp_path, **inputs)
    assert status == 0
    assert "Only headers were read." in summary


def test_the_action_installs_what_the_package_is_called() -> None:
    steps: list[dict[str, Any]] = ACTION["runs"]["steps"]
    assert steps[0]["run"] == 'python -m pip install --quiet "$PACKAGE"'
    package = steps[0]["env"]["PACKAGE"]
    assert package == "${{ inputs.package || format('{0}[models]', github.action_path) }}"  # its own version
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
    folder = tmp_path / "a b"
    files = sorted(map(str, folder.iterdir()))
    assert len(files) == 4
    words = [*HOOK["args"], *files]
    python = [sys.executable, "-P", "-m", "inspector"]
    assert command(words) == [*python, "check", "--values", "none", "--", str(folder)]
    assert HOOK["entry"].split()[0] == "python"
    hook = [sys.executable, *HOOK["entry"].split()[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*hook, *words], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert (done.returncode, "Only headers were read." in done.stdout) == (0, True), done


def test_the_hook_leaves_files_alone_that_are_no_checkpoints(tmp_path: Path) -> None:
    for name in ("app/config.json", "1_Pooling/config.json", "-o/model.safetensors"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"{}")
    plain = [str(tmp_path / name) for name in ("app/config.json", "1_Pooling/config.json")]
    assert command(plain) is None
    assert main(plain) == 0
    baseline, weights = plain[0], str(tmp_path / "-o/model.safetensors")
    check = command(["--baseline", baseline, "--strict", *plain, weights])
    assert check is not None
    assert check[5:] == ["--baseline", baseline, "--strict", "--", str(tmp_path / "-o")]


@pytest.mark.parametrize(("status", "told"), [(0, 0), (1, 1), (2, 2), (3, 0)])
def test_what_could_not_be_checked_stops_no_commit(monkeypatch, tmp_path: Path, status: int, told: int) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    monkeypatch.setattr(commit_hook.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], status))
    assert main([str(tmp_path / "model.safetensors")]) == told
