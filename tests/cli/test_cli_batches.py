"""Verbs about many checkpoints: one JSON object, exit status, and going on after kill -9."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from inspector.cli.report_names import file_names
from inspector.store.origins.snapshots import Snapshot
from inspector.store.reference import CheckpointRef
from tests.store.store_builders import small_checkpoint

ROOT = Path(__file__).parents[2]
WORDS = "bert.embeddings.word_embeddings.weight"
STEPS = (5, 40, 300)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three snapshots that drift: each a step away from the one before."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    drift = np.random.default_rng(1).normal(size=32).astype(np.float32)
    for number, step in enumerate(STEPS):
        snapshot = small_checkpoint(folder / f"checkpoint-{step}")
        tensors = load_file(snapshot / "model.safetensors")
        tensors[WORDS] = tensors[WORDS] + number * drift
        save_file(tensors, snapshot / "model.safetensors", metadata={"format": "pt"})
    return folder


def matrix(run: Path, step: int) -> np.ndarray:
    return load_file(run / f"checkpoint-{step}" / "model.safetensors")[WORDS].astype(float)


def strict(text: str) -> dict:
    assert text.count("\n") == 1
    return json.loads(text, parse_constant=pytest.fail)


def test_vitals_of_a_folder_are_a_series_by_step(call, run) -> None:
    status, stdout, stderr = call("vitals", run, "--token", "w3", "--json")
    assert status == 0, stderr
    found = strict(stdout)
    assert found["verb"] == "vitals"
    assert found["counts"] == {"done": 3, "refused": 0, "failed": 0}
    for line, step in zip(found["checkpoints"], STEPS, strict=True):
        assert line["checkpoint"] == str(run / f"checkpoint-{step}")
        assert (line["step"], line["status"]) == (step, "done")
        assert line["result"]["fingerprint"] == line["fingerprint"]
        norms = np.linalg.norm(matrix(run, step), axis=1)
        assert line["result"]["norms"]["max"] == pytest.approx(norms.max(), rel=1e-5)
        assert line["result"]["pad_norm"] == pytest.approx(norms[0], rel=1e-5)
    first = matrix(run, STEPS[0])[11]
    for row, step in zip(found["series"]["drift"], STEPS, strict=True):
        later = matrix(run, step)[11]
        cosine = first @ later / np.linalg.norm(first) / np.linalg.norm(later)
        assert (row["step"], row["token"]) == (step, "w3")
        assert row["cosine"] == pytest.approx(cosine, abs=1e-5)
    assert f"3 of 3: {run}" in stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--against", "middle"), "--against: Against must be first or last, not 'middle'."),
        (("-k", "0"), "-k: Neighbors must be between 1 and 100, not 0."),
    ],
)
def test_vitals_refuses_before_anything_is_opened(call, options, sentence) -> None:
    assert call("vitals", "no-such-thing", *options) == (2, "", f"{sentence}\n")


def test_one_that_cannot_be_opened_ends_nothing(call, run, tmp_path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model.safetensors").write_bytes(b"no weights")
    listed = tmp_path / "list.txt"
    listed.write_text(f"# of tonight\n\n{broken}\nno-such-thing\n", encoding="utf-8")
    one = run / "checkpoint-5"
    status, stdout, stderr = call("check", one, "--list", listed, "--json")
    assert status == 2, stderr
    found = strict(stdout)
    assert [line["status"] for line in found["checkpoints"]] == ["done", "refused", "refused"]
    assert found["checkpoints"][0]["result"]["checks"]
    assert "model.safetensors" in found["checkpoints"][1]["error"]
    assert "There is no 'no-such-thing'" in found["checkpoints"][2]["error"]
    alone = strict(call("check", one, "--json")[1])
    assert found["checkpoints"][0]["result"] == alone  # the verb's own object


def test_a_failed_check_is_status_1_whatever_else_is_wrong(call, run, tmp_path) -> None:
    sick = small_checkpoint(tmp_path / "sick")
    tensors = load_file(sick / "model.safetensors")
    tensors[WORDS][20, 0] = np.nan
    save_file(tensors, sick / "model.safetensors", metadata={"format": "pt"})
    arguments = ("check", run / "checkpoint-5", sick, "no-such-thing")
    kept = tmp_path / "results.jsonl"
    assert call(*arguments, "--results", kept)[0] == 1
    status, stdout, stderr = call(*arguments, "--results", kept, "--format", "junit")
    assert status == 1
    assert stderr.count("(reused)") == 2
    root = ElementTree.fromstring(stdout.partition("\n")[2])
    assert len(root) == 3
    assert [suite.get("errors") for suite in root] == ["0", "0", "1"]
    assert int(root.get("failures", 0)) >= 1
    assert root.get("errors") == "1"
    status, stdout, _ = call(*arguments, "--results", kept, "--format", "github")
    assert status == 1
    assert "::error title=refused::no-such-thing: There is no" in stdout
    said = [line.partition(": ")[0] for line in stdout.splitlines() if not line.startswith("::")]
    assert said == [f"Checkpoint {run / 'checkpoint-5'}", f"Checkpoint {sick}"]
    status, stdout, stderr = call(*arguments, "--baseline", kept)
    assert (status, stdout) == (2, "")
    status, stdout, _ = call(*arguments, "--results", kept)
    assert "1 refused" in stdout


def test_what_has_changed_is_asked_again_and_nothing_else(call, run, tmp_path) -> None:
    snapshots = tmp_path / "run"
    for step in STEPS[:2]:
        small_checkpoint(snapshots / f"checkpoint-{step}", seed=step)
    kept = tmp_path / "results.jsonl"
    arguments = ("vitals", snapshots, "--results", kept, "--json")
    first = strict(call(*arguments)[1])
    _, stdout, stderr = call(*arguments)
    assert strict(stdout) == first
    assert stderr.count("(reused)") == 2
    changed = snapshots / "checkpoint-40" / "model.safetensors"
    tensors = load_file(changed)
    tensors[WORDS] *= 2
    save_file(tensors, changed, metadata={"format": "pt"})
    _, stdout, stderr = call(*arguments)
    assert stderr.count("(reused)") == 1
    before, after = (found["checkpoints"][1]["result"]["norms"]["max"]
                     for found in (first, strict(stdout)))  # fmt: skip
    assert after == pytest.approx(2 * before, rel=1e-6)
    assert len(kept.read_text().splitlines()) == 3
    assert call("vitals", snapshots, "-k", "3", "--results", kept)[2].count("(reused)") == 0


def test_equal_snapshots_keep_their_names(call, tmp_path) -> None:
    """As where the last snapshot of a run is the model that came of it."""
    snapshots = tmp_path / "run"
    for step in STEPS[:2]:
        small_checkpoint(snapshots / f"checkpoint-{step}")
    found = strict(call("vitals", snapshots, "--json")[1])["checkpoints"]
    assert found[0]["fingerprint"] == found[1]["fingerprint"]
    assert [each["status"] for each in found] == ["done", "done"]
    assert [each["result"]["name"] for each in found] == [each["name"] for each in found]


def test_equal_files_are_read_where_they_were_opened_last(call, run, tmp_path) -> None:
    shutil.copytree(run / "checkpoint-5", tmp_path / "copy")
    status, _, stderr = call("embeddings", tmp_path / "copy")
    assert status == 0, stderr
    shutil.rmtree(tmp_path / "copy")
    status, _, stderr = call("compare", run / "checkpoint-5", run / "checkpoint-40", "--json")
    assert status == 0, stderr


def test_compare_goes_from_the_first_to_each_or_from_each_to_the_next(call, run) -> None:
    def changes(*options: str) -> dict[str, tuple[str, float]]:
        status, stdout, stderr = call("compare", run, "--moved", "1", "--json", *options)
        assert status == 0, stderr
        return {
            Path(line["checkpoint"]).name: (
                Path(line["result"]["against"]).name,
                next(tensor["relative_change"] for tensor in line["result"]["tensors"]
                     if tensor["name"] == WORDS),
            )
            for line in strict(stdout)["checkpoints"]
        }  # fmt: skip

    def expected(step: int, before: int) -> float:
        one, other = matrix(run, before), matrix(run, step)
        return float(np.linalg.norm(other - one) / np.linalg.norm(one))

    for found, pairs in ((changes(), {40: 5, 300: 5}), (changes("--previous"), {40: 5, 300: 40})):
        assert list(found) == [f"checkpoint-{step}" for step in pairs]
        for step, before in pairs.items():
            against, change = found[f"checkpoint-{step}"]
            assert against == f"checkpoint-{before}"
            assert change == pytest.approx(expected(step, before), rel=1e-5)
    status, _, stderr = call("compare", run / "checkpoint-5")
    assert status == 2
    assert "Name at least two checkpoints" in stderr
    status, _, stderr = call("compare", "no-such-thing", run)
    assert status == 2
    assert "The first checkpoint could not be opened" in stderr


def test_a_comparison_says_which_of_the_two_could_not_be_opened(call, run, tmp_path) -> None:
    middle, last = tmp_path / "middle", run / "checkpoint-300"
    middle.mkdir()
    (middle / "model.safetensors").write_bytes(b"no weights")
    status, stdout, stderr = call("compare", run / "checkpoint-5", middle, last, "--previous", "--json")
    assert status == 2, stderr
    broken, healthy = strict(stdout)["checkpoints"]
    assert healthy["error"] == f"{middle} could not be opened: {broken['error']}"
    assert broken["error"].startswith("model.safetensors ")
    assert call("compare", last, middle) == (2, "", f"{healthy['error']}\n")


def test_reports_of_many_are_one_file_each(call, run, tmp_path) -> None:
    folder, kept = tmp_path / "reports", tmp_path / "results.jsonl"
    arguments = ("report", run / "checkpoint-5", run / "checkpoint-40", "-o", folder,
                 "--sections", "overview", "--results", kept, "--json")  # fmt: skip
    status, stdout, stderr = call(*arguments)
    assert status == 0, stderr
    for line, step in zip(strict(stdout)["checkpoints"], STEPS, strict=False):
        page = folder / f"checkpoint-{step}.html"
        assert line["result"]["file"] == str(page)
        assert line["result"]["nbytes"] == page.stat().st_size
        assert line["fingerprint"][:12] in page.read_text(encoding="utf-8")
    (folder / "checkpoint-5.html").unlink()
    assert call(*arguments)[2].count("(reused)") == 1
    assert (folder / "checkpoint-5.html").is_file()
    status, _, stderr = call("report", run, "-o", tmp_path / "one.html")
    assert status == 2
    assert "one.html is a single file, but there are 3 checkpoints: give a folder." in stderr


def test_reports_get_names_of_their_own(tmp_path) -> None:
    names = ("a/run/step-1", "b/run/step-1", "b/run/step-2", "../x", "demo-bert")
    members = [Snapshot(name, CheckpointRef("path", name), None) for name in names]
    files = file_names(members, tmp_path)
    assert len(set(files.values())) == len(names)
    assert all(file.parent == tmp_path and file.suffix == ".html" for file in files.values())
    twins = [Snapshot(name, CheckpointRef("path", name), None) for name in ("a b", "a?b", "a_b")]
    assert len(set(file_names(twins, tmp_path).values())) == 3


def test_nothing_named_is_one_sentence(call, tmp_path) -> None:
    for verb in ("check", "vitals", "compare"):
        status, stdout, stderr = call(verb)
        assert (status, stdout) == (2, "")
        assert stderr.startswith("No checkpoint is given")
    status, _, stderr = call("check", "--list", tmp_path / "gone.txt")
    assert status == 2
    assert stderr.startswith("The list gone.txt cannot be read")


@pytest.mark.faults
def test_killed_in_the_middle_it_goes_on_and_computes_nothing_twice(tmp_path) -> None:
    run, kept = tmp_path / "run", tmp_path / "results.jsonl"
    count = 20  # of which some are left when this process learns of the first, however busy the machine
    for number in range(count):
        small_checkpoint(run / f"step_{number}", seed=number)
    command = [sys.executable, "-m", "inspector", "vitals", str(run), "--results", str(kept),
               "--json"]  # fmt: skip
    environment = os.environ | {"INSPECTOR_HOME": str(tmp_path / "home"), "INSPECTOR_WORKERS": "1"}
    first = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)  # fmt: skip
    while not (kept.exists() and kept.read_bytes().count(b"\n")):
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = kept.read_bytes()
    assert 1 <= before.count(b"\n") < count
    with kept.open("ab") as file:
        file.write(b'{"question": {"verb": "vit')  # as if it had been killed while it wrote
    second = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True,
                            check=True)  # fmt: skip
    assert second.stderr.count("(reused)") == before.count(b"\n")
    after = kept.read_bytes()
    assert after.startswith(before)  # nothing lost
    lines = [json.loads(line) for line in after.splitlines()]
    assert sorted(line["step"] for line in lines) == list(range(count))  # nothing twice
    for line in strict(second.stdout)["checkpoints"]:
        matrix = load_file(run / f"step_{line['step']}" / "model.safetensors")[WORDS]
        longest = np.linalg.norm(matrix.astype(float), axis=1).max()
        assert line["result"]["norms"]["max"] == pytest.approx(longest, rel=1e-5)
