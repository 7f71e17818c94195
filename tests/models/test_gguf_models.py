"""A GGUF file as a model: names, settings and logits are those of the model that it was converted from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from inspector.analyses.checks.compute import check
from inspector.analyses.embeddings.compute import embeddings
from inspector.analyses.overview.compute import overview
from inspector.analyses.sharing.compute import sharing
from inspector.errors import NotInCheckpointError
from inspector.models.build import OWN
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load
from inspector.models.running import forward
from tests.conftest import silent
from tests.gguf_models import ARCHITECTURES, convert, llama3_factors, small_model

Opener = Callable[[Path], StagedCheckpoint]
IDS = torch.tensor([[5, 17, 33, 2, 80, 41, 7, 9, 11, 64, 3, 28]])
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip


def logits(checkpoint: StagedCheckpoint) -> torch.Tensor:
    ran = forward(load(checkpoint, OWN), IDS, head=True)
    assert ran.logits is not None
    return ran.logits


def truth(model: PreTrainedModel) -> torch.Tensor:
    with torch.no_grad():
        return model(IDS).logits


def near(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_are_the_models(architecture, tmp_path, open_path):
    model = small_model(architecture)
    convert(model, tmp_path / "model.gguf", architecture)
    opened = open_path(tmp_path / "model.gguf")
    assert opened.config.architectures == [type(model).__name__]
    near(logits(opened), truth(model))
    stored = {name: tensor for name, tensor in model.state_dict().items() if name in opened.tensors.numbers}
    for name, tensor in opened.read([*stored]).items():
        near(tensor, stored[name])


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
@pytest.mark.parametrize("block", ["Q8_0", "Q5_0"])
def test_logits_of_blocks_are_those_of_the_dequantized_weights(architecture, block, tmp_path, open_path):
    model = small_model(architecture)
    convert(model, tmp_path / "model.gguf", architecture, block=block)
    kind = gguf.GGMLQuantizationType[block]
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                made = gguf.quants.dequantize(gguf.quants.quantize(parameter.numpy(), kind), kind)
                parameter.copy_(torch.from_numpy(made))
    near(logits(open_path(tmp_path / "model.gguf")), truth(model))


@pytest.mark.parametrize(
    ("architecture", "own"),
    [
        ("llama", {"rope_parameters": LLAMA3}),
        ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0}}),
        ("qwen2", {"rope_parameters": {
            "rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 32,
        }}),
        ("gemma3", {"rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
            "full_attention": {"rope_type": "linear", "rope_theta": 5e5, "factor": 8.0},
        }}),
        ("llama", {"attention_bias": True, "mlp_bias": True}),
        ("gemma2", {"final_logit_softcapping": 2.0, "attn_logit_softcapping": 1.5}),
    ],
)  # fmt: skip
def test_what_the_metadata_says_is_computed(architecture, own, tmp_path, open_path):
    """Scaled rotary positions, biases and soft caps, none of which is the class's default."""
    model = small_model(architecture, **own)
    factors = {"rope_freqs.weight": llama3_factors(model.config)} if LLAMA3 in own.values() else {}
    convert(model, tmp_path / "model.gguf", architecture, extra=factors)
    wanted = truth(model)
    assert (wanted - truth(small_model(architecture))).abs().max() > 1e-3
    near(logits(open_path(tmp_path / "model.gguf")), wanted)


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "another architecture": ("mamba2", {}, "models of its architecture, 'mamba2', are not built here"),
    "a setting that changes what it computes": (
        "llama", {"llama.logit_scale": 0.5},
        "its metadata has 'llama.logit_scale', which may change what it computes",
    ),
    "another scaling": (
        "llama", {"llama.rope.scaling.type": "longrope"}, "it scales its rotary positions in the way 'longrope'",
    ),
    "two scalings": (
        "llama", {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0},
        "it scales its rotary positions twice, by 'rope_freqs.weight' and by its metadata",
    ),
    "a part of the head that rotates": (
        "llama", {"llama.rope.dimension_count": 8}, "llama.rope.dimension_count is 8, and a head has 16",
    ),
    "sizes by layer": (
        "llama", {"llama.feed_forward_length": [96, 96]}, "llama.feed_forward_length is '(96, 96)' in its metadata",
    ),
    "layers without number, of which gemma3 lists the kinds": (
        "llama", {"llama.block_count": 2**31 - 1},
        "its metadata tells of 2,147,483,647 layers, and it has 21 tensors",
    ),
    "more layers than it has": (
        "llama", {"llama.block_count": 9},
        "its metadata sets num_hidden_layers to 9, but the weights have 2 layers: one of the two is not whole, or "
        "belongs to another model: compare both with their source",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_built_is_refused_by_name(case, tmp_path, open_path):
    """The rest is answered: tensors by their own names, and the embeddings."""
    architecture, more, why = REFUSED[case]
    model = small_model("llama")
    extra = {"rope_freqs.weight": np.ones(8, np.float32)} if case == "two scalings" else {}
    convert(model, tmp_path / "model.gguf", "llama", more={"general.architecture": architecture} | more, extra=extra)
    opened = open_path(tmp_path / "model.gguf")
    said = f"No model is built from the GGUF file, and its tensors keep their names: {why}."
    assert said in opened.manifest.warnings
    with pytest.raises(NotInCheckpointError) as refused:
        _ = opened.config_values
    assert str(refused.value) == f"{said} Its Overview, embeddings and numbers can be looked at."
    assert "blk.0.attn_q.weight" in opened.tensors.numbers
    assert overview(opened, progress=silent).vocab_rows == 96
    assert embeddings(opened, progress=silent).rows == 96
    assert said in " ".join(each.detail for each in check(opened, progress=silent).checks)


def test_tensors_of_another_model_are_refused_by_name(tmp_path, open_path):
    convert(
        small_model("qwen2"), tmp_path / "model.gguf", "qwen2", extra={"blk.0.ffn_gate_exps.weight": np.ones((2, 4, 8))}
    )
    said = "Qwen2ForCausalLM has no place for its tensor 'blk.0.ffn_gate_exps.weight'."
    assert any(each.endswith(said) for each in open_path(tmp_path / "model.gguf").manifest.warnings)


def test_the_overview_has_both_names_and_the_settings(tmp_path, open_path):
    model = small_model("llama", rope_parameters=LLAMA3)
    factors = {"rope_freqs.weight": llama3_factors(model.config)}
    convert(model, tmp_path / "model.gguf", "llama", block="Q8_0", extra=factors)
    opened = open_path(tmp_path / "model.gguf")
    found = overview(opened, tensors=True, progress=silent)
    assert (found.model_type, found.architecture, found.layers, found.d_model) == ("llama", "LlamaForCausalLM", 2, 64)
    assert found.heads["causal_lm"] == "present"
    assert found.unique_parameters == sum(each.numel() for each in model.parameters())
    assert found.listed_tensors is not None
    both = {each.name: each.name_in_file for each in found.listed_tensors}
    assert both["model.layers.1.self_attn.q_proj.weight"] == "blk.1.attn_q.weight"
    assert (found.config["rms_norm_eps"], found.config["rope_parameters"]["rope_theta"]) == (1e-6, 500.0)
    assert (
        "The GGUF file is read as LlamaForCausalLM: settings are made from its metadata, and tensors have the names "
        "of that class, so 'blk.0.attn_q.weight' is 'model.layers.0.self_attn.q_proj.weight'."
    ) in found.warnings
    checks = {each.name: each for each in check(opened, progress=silent).checks}
    assert "rope_freqs" not in " ".join(each.detail for each in checks.values())
    assert not [each.name for each in checks.values() if each.status == "fail"]


@pytest.mark.parametrize("tied", [True, False])
def test_a_file_without_an_output_matrix_is_tied(tied, tmp_path, open_path):
    convert(small_model("qwen2", tie_word_embeddings=tied), tmp_path / "model.gguf", "qwen2", block="Q8_0")
    (group,) = sharing(open_path(tmp_path / "model.gguf"), progress=silent).groups or (None,)
    assert (group is not None and group.verdict == "tied") == tied
    if group is not None and tied:
        assert "model.gguf and the class declare it" in group.reason
