"""Layers for multi-token prediction are a note where config.json or the class names them; others are left over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.compute import check
from inspector.analyses.checks.result import Checks
from inspector.catalog import answer
from inspector.models.checkpoint import StagedCheckpoint
from tests.conftest import silent
from tests.families import DECODER
from tests.sentences import NO_TOKENIZER

EXPERTS = DECODER | {"moe_intermediate_size": 16, "num_experts_per_tok": 2}
DEEPSEEK = EXPERTS | {
    "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1, "q_lora_rank": 8, "head_dim": 8,
    "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
}  # fmt: skip
NEXT = EXPERTS | {
    "num_experts": 4, "shared_expert_intermediate_size": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 2,
    "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_conv_kernel_dim": 2,
    "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip
JOINED = {"enorm.weight": (32,), "hnorm.weight": (32,), "eh_proj.weight": (32, 64)}  # an embedding and a state
SHARED = {"embed_tokens.weight": (60, 32), "shared_head.norm.weight": (32,), "shared_head.head.weight": (60, 32)}
LAYER_2 = {f"model.layers.2.{name}": shape for name, shape in (JOINED | SHARED).items()}
MTP = {"fc.weight": (32, 64), "norm.weight": (32,), "layers.0.mlp.up_proj.weight": (48, 32)}

# class, its sizes, what config.json says besides, the tensors beside those of the model, what is said of them
Case = tuple[str, dict[str, Any], dict[str, Any], dict[str, tuple[int, ...]], str]
DECLARED: dict[str, Case] = {
    "DeepSeek-V3": (
        "DeepseekV3ForCausalLM", DEEPSEEK, {"num_nextn_predict_layers": 1}, LAYER_2,
        "Layer 2 is the multi-token-prediction layer that config.json declares (num_nextn_predict_layers 1)",
    ),
    "GLM-4.5": (
        "Glm4MoeForCausalLM", EXPERTS | {"n_routed_experts": 4, "first_k_dense_replace": 1},
        {"num_nextn_predict_layers": 1}, LAYER_2,
        "Layer 2 is the multi-token-prediction layer that config.json declares (num_nextn_predict_layers 1)",
    ),
    "two layers": (
        "LlamaForCausalLM", DECODER, {"num_mtp_layers": 2},
        LAYER_2 | {f"model.layers.3.{name}": shape for name, shape in JOINED.items()},
        "Layers 2, 3 are the multi-token-prediction layers that config.json declares (num_mtp_layers 2)",
    ),
    "Qwen3-Next": (
        "Qwen3NextForCausalLM", NEXT, {}, {f"mtp.{name}": shape for name, shape in MTP.items()},
        "3 tensors belong (such as mtp.fc.weight) to the multi-token-prediction layers that Qwen3NextForCausalLM is "
        "written to leave out",
    ),
    "MiMo": (
        "Qwen2ForCausalLM", DECODER, {"num_nextn_predict_layers": 1},
        {f"model.mtp_layers.0.{name}": shape for name, shape in MTP.items()},
        "(such as model.mtp_layers.0.fc.weight) to the multi-token-prediction layer that config.json declares",
    ),
    "ERNIE": (
        "Ernie4_5_MoeForCausalLM", EXPERTS | {"moe_num_experts": 4, "moe_k": 2, "moe_layer_start_index": 1},
        {"num_nextn_predict_layers": 1},
        {"model.mtp_block.0.mlp.up_proj.weight": (48, 32), "model.mtp_emb_norm.0.weight": (32,)},
        "to the multi-token-prediction layer that config.json declares (num_nextn_predict_layers 1)",
    ),
    "nested": (
        "LlamaForCausalLM", DECODER, {"mtp_config": {"mtp_num_hidden_layers": 1}},
        {f"mtp.{name}": shape for name, shape in MTP.items()},
        "to the multi-token-prediction layer that config.json declares (mtp_num_hidden_layers 1)",
    ),
}  # fmt: skip


def saved(folder: Path, architecture: str, sizes: dict[str, Any], says: dict[str, Any], more: dict[str, Any]) -> Path:
    """Save a model with tensors beside its own, and a config.json that says more."""
    model_class = getattr(transformers, architecture)
    torch.manual_seed(0)
    model_class(model_class.config_class(**sizes)).save_pretrained(folder)
    state = load_file(folder / "model.safetensors")
    state |= {name: torch.randn(shape) for name, shape in more.items()}
    if any(name.startswith("model.layers.2.") for name in more):  # and all that an ordinary layer has
        state |= {k.replace("layers.1.", "layers.2."): v.clone() for k, v in state.items() if "layers.1." in k}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config = {key: value for key, value in config.items() if "nextn" not in key and "mtp" not in key} | says
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def alarms(checks: Checks) -> set[str]:
    return {each.name for each in checks.checks if each.status != "ok"}


@pytest.mark.parametrize("case", DECLARED)
def test_layers_that_are_declared_are_a_note(open_path: Callable[[Path], StagedCheckpoint], tmp_path, case):
    architecture, sizes, says, more, said = DECLARED[case]
    folder = saved(tmp_path / "a", architecture, sizes, says, more)
    _, info = getattr(transformers, architecture).from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    checkpoint = open_path(folder)
    checks = check(checkpoint, progress=silent)
    assert alarms(checks) == {"Under-trained tokens"}
    (found,) = [each for each in checks.checks if each.name == "Left-over tensors"]
    assert said in found.detail
    assert "vLLM and SGLang use" in found.detail
    assert more.keys() <= {each.subject for each in found.evidence if each.problem == "multi-token prediction"}
    assert {each.severity for each in found.evidence} == {"note"}
    assert checkpoint.manifest.warnings == (NO_TOKENIZER,)
    assert checkpoint.embedding.name == "model.embed_tokens.weight"
    warnings = answer("sharing", checkpoint, count_reuse=False, progress=silent).warnings
    assert not [each for each in warnings if "has no place for" in each]


@pytest.mark.parametrize(
    ("says", "more", "left"),
    [
        ({}, LAYER_2, "model.layers.2.eh_proj.weight"),  # nothing declares it
        ({"num_nextn_predict_layers": 0}, LAYER_2, "model.layers.2.eh_proj.weight"),
        ({}, {f"mtp.{name}": shape for name, shape in MTP.items()}, "mtp.fc.weight"),
        # A layer like the others, which num_hidden_layers leaves out
        ({"num_nextn_predict_layers": 1}, {"model.layers.2.mlp.up_proj.weight": (48, 32)}, "model.layers.2.mlp"),
        # One more than are declared
        (
            {"num_nextn_predict_layers": 1},
            LAYER_2 | {f"model.layers.3.{name}": shape for name, shape in JOINED.items()},
            "model.layers.3.eh_proj.weight",
        ),
    ],
)
def test_others_are_left_over_and_nobody_is_told_to_drop_them(open_path, tmp_path, says, more, left):
    checks = check(open_path(saved(tmp_path / "a", "LlamaForCausalLM", DECODER, says, more)), progress=silent)
    (found,) = [each for each in checks.checks if each.name == "Left-over tensors"]
    assert found.status == "warn"
    assert any(each.subject.startswith(left) for each in found.evidence if each.severity == "minor")
    assert found.next_step.endswith("Keep them otherwise: another program may use what this class leaves out.")
