"""Families without a row in the table: their logits are those of transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.compute import check
from inspector.analyses.ladder.compute import climb
from inspector.analyses.lens.compute import lens
from inspector.analyses.overview.compute import overview
from inspector.analyses.sharing.compute import sharing
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.reading import ladder as ladder_module
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import ENCODER_DECODER, RENAMED, UNLISTED, random_model, save_checkpoint

TEXT = "w1 w2 w3 ##a w30"
ON_CPU: Any = {"device": "cpu", "dtype": "float32"}


def own_logits(checkpoint, folder, architecture) -> torch.Tensor:
    """What transformers' own model answers, (positions, vocab)."""
    model = getattr(transformers, architecture).from_pretrained(folder / architecture).eval()
    with torch.inference_mode():
        return model(torch.tensor([checkpoint.tokens.encode(TEXT).ids])).logits[0]


@pytest.mark.parametrize("architecture", sorted(UNLISTED))
def test_scales_caps_and_extra_biases_are_in_the_logits(open_model, tmp_path, architecture):
    checkpoint = open_model(architecture)
    logits = own_logits(checkpoint, tmp_path, architecture)
    result = lens(checkpoint, progress=silent, text=TEXT, k=60, **ON_CPU)
    cells = result.cells.query("rung == 'logits'").sort_values(["position", "token_id"])
    assert set(cells["layer"]) == {len(result.layers) - 1}
    assert cells["score"].tolist() == pytest.approx(logits.flatten().tolist(), abs=1e-5)
    probability = logits.softmax(dim=1).flatten().tolist()
    assert cells["probability"].tolist() == pytest.approx(probability, abs=1e-6)
    assert result.taken_from_model
    assert any("taken from the model itself" in warning for warning in result.warnings)
    way = climb(checkpoint, progress=silent, text=TEXT, k=60, **ON_CPU)
    last = way.geometry.sort_values("token_id")
    assert last["logit"].tolist() == pytest.approx(logits[-1].tolist(), abs=1e-5)


def test_a_plain_output_layer_is_not_called_taken(open_model):
    listed = open_model("LlamaForCausalLM")
    checkpoint = StagedCheckpoint(listed.manifest, settings=listed.settings, families={})
    result = lens(checkpoint, progress=silent, text=TEXT, **ON_CPU)
    assert not result.taken_from_model
    assert not any("taken from" in warning for warning in result.warnings)


@pytest.mark.parametrize("layers", [None, [1]])
def test_steps_that_miss_the_logits_are_not_shown(open_model, tmp_path, monkeypatch, layers):
    """A table that is wrong by a factor: none of its steps is shown, at any layer."""
    checkpoint = open_model("LlamaForCausalLM")

    def doubled(self, vectors, *, plain=False):
        return vectors @ self.weight.T * 2

    monkeypatch.setattr(ladder_module.Unembedding, "score", doubled)
    result = lens(checkpoint, progress=silent, text=TEXT, k=60, layers=layers, **ON_CPU)
    assert result.taken_from_model
    cells = result.cells.query("rung == 'logits'").sort_values(["position", "token_id"])
    if layers:
        assert cells.empty
    else:
        logits = own_logits(checkpoint, tmp_path, "LlamaForCausalLM")
        assert cells["score"].tolist() == pytest.approx(logits.flatten().tolist(), abs=1e-5)


@pytest.mark.parametrize("architecture", sorted(RENAMED | UNLISTED))
def test_renamed_tensors_have_their_places(open_model, tmp_path, architecture):
    checkpoint = open_model(architecture)
    model = getattr(transformers, architecture).from_pretrained(tmp_path / architecture)
    listed = sum(p.numel() for _, p in model.named_parameters(remove_duplicate=False))
    shared = sharing(checkpoint, progress=silent)
    found = overview(checkpoint, progress=silent)
    for each in (shared, found):
        counts = (each.listed_parameters, each.unique_parameters)
        assert counts == (listed, model.num_parameters())
        assert not any("no place" in warning for warning in each.warnings)
    head = "masked_lm" if architecture.endswith("MaskedLM") else "causal_lm"
    assert found.heads[head] == "present"
    left = next(c for c in check(checkpoint, progress=silent).checks if c.name.startswith("Left"))
    assert left.status == "ok"


def test_a_tensor_without_a_place_is_still_named(open_path, tmp_path):
    folder = save_checkpoint(random_model("MixtralForCausalLM"), tmp_path / "more")
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"model.layers.0.mlp.extra": torch.ones(3)}, folder / "model.safetensors")
    warnings = sharing(open_path(folder), progress=silent).warnings
    assert any("no place for 1 tensor of the file, such as model.layers.0.mlp.extra" in warning
               for warning in warnings)  # fmt: skip


@pytest.mark.parametrize("architecture", [*ENCODER_DECODER, "BertForPreTraining", "GPT2LMHeadModel"])
def test_the_overview_counts_what_sharing_counts(open_model, architecture):
    checkpoint = open_model(architecture)
    shared, found = sharing(checkpoint, progress=silent), overview(checkpoint, progress=silent)
    assert found.listed_parameters == shared.listed_parameters
    assert found.unique_parameters == shared.unique_parameters
    assert found.layers == 2


def test_json_has_the_tolerance(open_model):
    result = lens(open_model("LlamaForCausalLM"), progress=silent, text=TEXT, **ON_CPU)
    plain = to_json(result)
    assert 0 <= plain["max_abs_error"] <= plain["tolerance"] < 1e-3
    assert plain["taken_from_model"] is False
