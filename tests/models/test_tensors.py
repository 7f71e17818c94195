"""Mapped tensors against what the libraries read."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.compute_census import take_census
from inspector.errors import CheckpointError
from inspector.models.build import build_model, own_class
from inspector.models.tensors import StoredReader
from inspector.store.copies import equal_copies
from tests.conftest import silent
from tests.families import random_model, save_checkpoint


def test_safetensors_are_read_as_the_library_reads_them(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForPreTraining").half(), tmp_path / "bert")
    truth = load_file(folder / "model.safetensors")
    read = open_path(folder).state
    assert read.keys() == truth.keys()
    assert all(torch.equal(read[name], truth[name]) for name in truth)
    assert all(read[name].dtype == truth[name].dtype for name in truth)


@pytest.mark.parametrize("legacy", [False, True])
def test_bin_keeps_values_strides_and_shared_storages(tmp_path, open_path, legacy):
    model = random_model("BertForPreTraining")
    folder = save_checkpoint(model, tmp_path / "bert")
    (folder / "model.safetensors").unlink()
    state = dict(model.state_dict())
    state["transposed"] = torch.arange(12.0).reshape(3, 4).T
    path = folder / "pytorch_model.bin"
    torch.save(state, path, _use_new_zipfile_serialization=not legacy)
    read = open_path(folder).state
    assert read.keys() == state.keys()
    for name, truth in state.items():
        assert torch.equal(read[name], truth), name
        assert read[name].stride() == truth.stride()
    first, second = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
    assert read[first].data_ptr() == read[second].data_ptr()


def test_reading_some_and_unknown_tensors(open_model):
    checkpoint = open_model("BertModel")
    name = "embeddings.LayerNorm.weight"
    assert list(StoredReader(checkpoint.manifest).read([name])) == [name]
    with pytest.raises(CheckpointError, match="There is no tensor 'x'"):
        StoredReader(checkpoint.manifest).read(["x"])


def test_writing_to_a_tensor_changes_no_file(open_model):
    checkpoint = open_model("BertModel")
    name = "embeddings.LayerNorm.weight"
    StoredReader(checkpoint.manifest).read([name])[name].zero_()
    assert StoredReader(checkpoint.manifest).read([name])[name].abs().sum() > 0


def test_two_thousand_shards_are_read_with_few_handles(tmp_path, open_path, monkeypatch):
    """Mapped all at once, and their pieces compared, within the limit of a plain shell."""
    folder = tmp_path / "shards"
    folder.mkdir()
    truth = {}
    for number in range(1, 2_001):
        name = f"model-{number:05}-of-02000.safetensors"
        truth[f"t{number}"] = torch.arange(8.0) + number % 1_000
        save_file({f"t{number}": truth[f"t{number}"]}, folder / name)
    checkpoint = open_path(folder)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 200  # beyond what other tests keep open
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, hard), hard))
    try:
        state = checkpoint.state
        groups = equal_copies(checkpoint.manifest)
        census = take_census(checkpoint.manifest, silent)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert all(torch.equal(state[name], tensor) for name, tensor in truth.items())
    assert groups == [(f"t{number}", f"t{number + 1_000}") for number in range(1, 1_001)]
    assert sum(each.read for each in census) == 8 * 2_000


def test_what_nothing_refers_to_is_unmapped(open_model):
    checkpoint = open_model("BertModel")
    (weights,) = (file for file in checkpoint.manifest.files if file.format == "safetensors")

    def mappings():
        return Path("/proc/self/maps").read_text().count(str(weights.path))

    read = StoredReader(checkpoint.manifest).read(checkpoint.manifest.tensors.names)
    assert mappings() == 1  # of 39 tensors
    kept = read["embeddings.LayerNorm.weight"]
    del read
    assert mappings() == 1
    assert kept.sum().isfinite()
    del kept
    assert mappings() == 0


def test_a_file_that_was_cut_short_is_refused_before_it_is_touched(open_model):
    checkpoint = open_model("BertModel")
    (weights,) = (file for file in checkpoint.manifest.files if file.format == "safetensors")
    with weights.path.open("r+b") as file:
        file.truncate(weights.nbytes - 1)
    with pytest.raises(CheckpointError) as error:
        StoredReader(checkpoint.manifest).read(checkpoint.manifest.tensors.names)
    assert str(error.value) == ("model.safetensors has changed since it was opened: open it again.")


def test_missing_weights_are_not_a_number(open_model):
    """A model built with a head that the file lacks cannot answer with random numbers."""
    from transformers import BertForMaskedLM

    checkpoint = open_model("BertModel")
    model, missing = build_model(BertForMaskedLM, checkpoint.config, checkpoint.state, name="bert")
    assert "cls.predictions.transform.dense.weight" in missing
    with torch.inference_mode():
        assert torch.isnan(model(torch.tensor([[2, 9, 3]])).logits).all()


def test_weights_of_another_model_are_refused(open_model):
    checkpoint = open_model("BertModel")
    evil = {f"evil.{name}": tensor for name, tensor in checkpoint.state.items()}
    with pytest.raises(CheckpointError, match="None of the 39 tensors of bert belongs"):
        build_model(own_class(checkpoint.config), checkpoint.config, evil, name="bert")


def test_shapes_that_do_not_fit_are_refused(open_model):
    checkpoint = open_model("BertModel")
    state = dict(checkpoint.state)
    state["pooler.dense.weight"] = torch.ones(3, 32)
    with pytest.raises(CheckpointError) as error:
        build_model(own_class(checkpoint.config), checkpoint.config, state, name="bert")
    assert str(error.value) == (
        "pooler.dense.weight is 3 × 32 in the file but 32 × 32 according to config.json, so the two do not fit: "
        "compare both with their source."
    )
