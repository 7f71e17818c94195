"""Every bad checkpoint that is made up is tried in one file, and what its answers are compared with can say no."""

from __future__ import annotations

from collections import Counter

from safetensors.numpy import load_file, save_file

from inspector.catalog import answer
from inspector.models.checkpoint import StagedCheckpoint
from inspector.settings import read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.store import test_hostile_configs, test_hostile_files, test_hostile_tokenizers, test_hostile_weights
from tests.store.hostile_mix import sound
from tests.store.hostile_truth import agrees
from tests.store.hostile_trying import QUESTIONS, REPORTED, made

FILES = (test_hostile_configs, test_hostile_files, test_hostile_tokenizers, test_hostile_weights)


def names_tried(test: str) -> Counter[str]:
    """The cases that a test of the files is given, and how often."""
    marks = [mark for file in FILES for mark in getattr(file, test).pytestmark if mark.name == "parametrize"]
    return Counter(case.values[0] for mark in marks for case in mark.args[1])


def test_there_are_enough_and_each_is_in_one_file():
    assert len(made()) >= 350
    assert names_tried("test_each_is_handled") == Counter(made().keys())
    assert names_tried("test_a_report_is_written_or_refused") == Counter(sorted(made())[::REPORTED])


def test_the_truth_tells_right_from_wrong(tmp_path):
    (tmp_path / "case").mkdir()
    path = sound(tmp_path / "case")
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path / "home")})
    checkpoint = StagedCheckpoint(
        open_checkpoint(CheckpointRef("path", str(path)), settings=settings, progress=silent, restrict_paths=False)[0],
        settings=settings,
    )
    found = {verb: answer(verb, checkpoint, **QUESTIONS[verb], progress=silent) for verb in ("overview", "predict")}
    assert [agrees(verb, result, path) for verb, result in found.items()] == [True, True]
    tensors = load_file(path / "model.safetensors")
    tensors["cls.predictions.bias"][:] = range(60)
    del tensors["bert.embeddings.LayerNorm.bias"]
    save_file(tensors, path / "model.safetensors")
    assert [agrees(verb, result, path) for verb, result in found.items()] == [False, None]
    tensors["bert.embeddings.LayerNorm.bias"] = tensors["bert.embeddings.LayerNorm.weight"] * 0
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
    assert [agrees(verb, result, path) for verb, result in found.items()] == [True, False]
    (path / "model.safetensors").write_bytes(b"")
    assert [agrees(verb, result, path) for verb, result in found.items()] == [None, None]
