"""Snapshots of a run: which they are, at which step, whether they changed, and as an upload."""

from __future__ import annotations

import csv
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from inspector.demo import RUNS, SNAPSHOTS
from inspector.errors import CheckpointError
from inspector.store.manifests.manifest import StoredCheckpoint
from inspector.store.origins.snapshots import (
    find_run,
    identity_of,
    in_order,
    is_run,
    list_snapshots,
    snapshot_of,
    step_of,
    uploaded_runs,
)
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from tests.store.store_builders import opened, small_checkpoint, uploaded
from tools.train_demos.snapshots import CARD, RECIPE, STEPS, sentences, train


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("checkpoint-500", 500), ("step_500", 500), ("global_step500", 500), ("500", 500),
        ("step-000500", 500), ("iter_0000100", 100), ("checkpoint_1_500", 500),
        ("epoch=1-step=500", 500), ("epoch-3", 3), ("step10k", 10_000), ("2M", 2_000_000),
        ("step_500.safetensors", 500), ("run2-checkpoint-40-merged", 40), ("final", None),
        ("model.safetensors", None), ("pytorch_model.bin", None), ("bert-base", None),
        ("gpt2", None), ("checkpoint-1e5", None), ("", None), ("9" * 40, None),
    ],
)  # fmt: skip
def test_steps_are_read_off_names(name: str, step: int | None) -> None:
    assert step_of(name) == step


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"weights")
    return path


def test_a_folder_of_snapshots_is_listed_by_step_and_then_by_name(tmp_path: Path) -> None:
    for name in ("checkpoint-1000", "checkpoint-200", "checkpoint-30", "final10", "final9"):
        touch(tmp_path / name / "model.safetensors")
    touch(tmp_path / "logs" / "events.out")
    touch(tmp_path / "checkpoint-7" / "optimizer.pt")  # no weights
    touch(tmp_path / ".hidden" / "model.safetensors")
    touch(tmp_path / "trainer_state.json")
    found = list_snapshots(tmp_path)
    assert [(each.name, each.step) for each in found] == [
        ("checkpoint-30", 30), ("checkpoint-200", 200), ("checkpoint-1000", 1000),
        ("final9", None), ("final10", None),
    ]  # fmt: skip
    assert found[0].reference == CheckpointRef("path", str(tmp_path / "checkpoint-30"))
    assert is_run(tmp_path)
    touch(tmp_path / "model.safetensors")  # what a trainer leaves at the end: a checkpoint itself
    assert not is_run(tmp_path)


def test_files_with_steps_are_snapshots_and_shards_are_not(tmp_path: Path) -> None:
    for step in (20, 3):
        touch(tmp_path / "run" / f"step_{step}.safetensors")
    assert [each.step for each in list_snapshots(tmp_path / "run")] == [3, 20]
    assert is_run(tmp_path / "run")
    for shard in (1, 2):
        touch(tmp_path / "one" / f"model-0000{shard}-of-00002.safetensors")
    assert not is_run(tmp_path / "one")
    with pytest.raises(CheckpointError, match="There are no snapshots in 'one'"):
        list_snapshots(tmp_path / "one")
    touch(tmp_path / "lone" / "step_5.safetensors")
    assert not is_run(tmp_path / "lone")


def test_an_identity_changes_exactly_with_the_files(tmp_path: Path) -> None:
    weights = touch(tmp_path / "a" / "model.safetensors")
    before = identity_of(tmp_path / "a")
    touch(tmp_path / "a" / "optimizer.pt")  # not a file of the checkpoint
    assert identity_of(tmp_path / "a") == before
    stat = weights.stat()
    weights.write_bytes(b"WEIGHTS")
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert identity_of(tmp_path / "a") != before
    assert identity_of(tmp_path / "gone") is None


def test_the_web_app_finds_runs_below_its_roots_alone(tmp_path: Path) -> None:
    roots = (tmp_path / "allowed",)
    touch(tmp_path / "allowed" / "run" / "step-1" / "model.safetensors")
    touch(tmp_path / "secret" / "step-2" / "model.safetensors")
    (tmp_path / "allowed" / "run" / "step-9").symlink_to(tmp_path / "secret" / "step-2")
    (tmp_path / "allowed" / "door").symlink_to(tmp_path / "secret")
    for text in ("path:run", f"path:{tmp_path}/allowed/run"):
        name, found = find_run(text, roots=roots, uploads={})
        assert (name, [each.name for each in found]) == ("run", ["step-1"])
    outside = "cannot be opened here"
    for text in (f"path:{tmp_path}/secret", "path:../secret", "path:door", "path:gone", "path:",
                 "path:a\0b", "upload:abc", "hub:a/b", "", "demo-nothing"):  # fmt: skip
        with pytest.raises(CheckpointError, match=outside):
            find_run(text, roots=roots, uploads={})
    with pytest.raises(CheckpointError, match=outside):
        find_run("path:run", roots=(), uploads={})


def test_uploads_with_a_common_beginning_are_a_run() -> None:
    stored = [
        StoredCheckpoint(f"{number:064x}", name, 1, "")
        for number, name in enumerate(
            ("run/checkpoint-20", "run/checkpoint-3", "mine", "alone/checkpoint-1", "a/b/x", "a/b/y")
        )
    ]
    runs = uploaded_runs(stored)
    assert {run: [each.name for each in found] for run, found in runs.items()} == {
        "a/b": ["x", "y"], "run": ["checkpoint-3", "checkpoint-20"],
    }  # fmt: skip
    assert str(runs["run"][0].reference) == f"upload:{1:064x}"
    assert find_run("uploads:run", roots=(), uploads=runs) == ("run", runs["run"])
    with pytest.raises(CheckpointError, match="The run 'gone' is no longer in the store"):
        find_run("uploads:gone", roots=(), uploads=runs)


def archive(folder: Path, *, settings) -> CheckpointRef:
    packed = folder.parent / "mine.zip"
    with zipfile.ZipFile(packed, "w") as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                file.write(path, path.relative_to(folder.parent).as_posix())
    reference = uploaded(settings, {"mine.zip": packed.read_bytes()})
    return CheckpointRef("snapshots", reference.value)


def test_an_archive_of_snapshots_becomes_uploads_of_one_run(settings, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for step in (1, 2):
        small_checkpoint(run / f"checkpoint-{step}", seed=step)
    touch(run / "checkpoint-3" / "model.safetensors")
    touch(run / "notes.txt")
    manifest, reference = opened(archive(run, settings=settings), settings)
    assert reference == CheckpointRef("upload", manifest.fingerprint)
    assert "'checkpoint-3' was left out: " in manifest.warnings[0]
    runs = uploaded_runs(list_checkpoints(settings))
    assert list(runs) == ["mine"]
    assert [each.step for each in runs["mine"]] == [1, 2]
    for each in runs["mine"]:
        alone, _ = opened(CheckpointRef("path", str(run / each.name)), settings, strangers=False)
        assert alone.fingerprint == each.reference.value  # exactly the folder's own files
    assert not list((settings.home / "incoming").iterdir())


def test_what_is_no_archive_of_snapshots_is_refused(settings, tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "one" / "checkpoint-1")
    with pytest.raises(CheckpointError, match="does not contain several folders with weights"):
        opened(archive(tmp_path / "one", settings=settings), settings)
    loose = uploaded(settings, {"model.safetensors": b""})
    with pytest.raises(CheckpointError, match="Upload snapshots as one archive"):
        opened(CheckpointRef("snapshots", loose.value), settings)
    for step in (1, 2):
        touch(tmp_path / "bad" / f"checkpoint-{step}" / "model.safetensors")
    with pytest.raises(CheckpointError, match="'checkpoint-1' was left out: "):
        opened(archive(tmp_path / "bad", settings=settings), settings)
    assert list_checkpoints(settings) == ()


def test_the_bundled_run_is_what_its_log_says() -> None:
    """The log was written while it trained, by other code than the app's."""
    (run,) = RUNS
    snapshots = [snapshot_of(demo.folder) for demo in SNAPSHOTS.values()]
    assert tuple(each.step for each in in_order(snapshots)) == STEPS
    folder = next(iter(SNAPSHOTS.values())).folder.parent
    with (folder / "training_log.csv").open(encoding="utf-8") as file:
        log = {int(row["step"]): row for row in csv.DictReader(file)}
    assert max(log) == RECIPE.steps == STEPS[-1]
    for snapshot in snapshots:
        tensors = load_file(Path(snapshot.reference.value) / "model.safetensors")
        norms = np.linalg.norm(tensors["bert.embeddings.word_embeddings.weight"], axis=1)
        assert norms[0] == pytest.approx(float(log[snapshot.step or 0]["pad_norm"]), rel=1e-4)
    assert f"# {run}" in (folder / "README.md").read_text(encoding="utf-8")
    assert CARD.splitlines()[2] in (folder / "README.md").read_text(encoding="utf-8")


def test_the_script_saves_the_steps_that_it_is_told(tmp_path: Path) -> None:
    from dataclasses import replace

    text = {
        "b": "The first sentence of some length stands here. x = 1; y[2] = {3: 4}.",
        "a": "A second\nsentence that is broken over lines.\n\n   code(1, 2) == 3.\n",
    }
    assert sentences(text) == [
        "A second sentence that is broken over lines.",
        "The first sentence of some length stands here.",
    ]
    lines = [f"the word number {first} is near to {second}." for first in "abcdefgh"
             for second in "ijklmnop"]  # fmt: skip
    tiny = replace(RECIPE, steps=4, decay_steps=2, warmup=1, log_every=2, vocab_size=100, width=16,
                   layers=1, tokens=64)  # fmt: skip
    train(lines, tiny, (4, 0, 2), tmp_path)
    found = list_snapshots(tmp_path)
    assert [each.step for each in found] == [0, 2, 4]
    matrices = [
        load_file(tmp_path / each.name / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
        for each in found
    ]
    assert not np.array_equal(matrices[0], matrices[1])
    assert not np.array_equal(matrices[1], matrices[2])
    assert len((tmp_path / "training_log.csv").read_text().splitlines()) == 1 + 3
