"""Adapters that come without their base model: told by their settings or their names, and never taken for a model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.compute import check
from inspector.catalog import CATALOG, answer, request_of
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.adapters import describe_adapter
from inspector.store.manifests.entries import load_manifest
from tests.conftest import silent
from tests.families import random_model, save_checkpoint

# As PEFT 0.21 writes them for a Llama, or a BERT with a new classifier: names after "base_model.model.", its settings.
# Questions that headers, numbers and a tokenizer answer
ANSWERED = {"overview", "adapter", "check", "histogram", "tokenize", "tokens", "compare"}
LORA = ("model.layers.0.self_attn.q_proj.lora_A.weight", "model.layers.0.self_attn.q_proj.lora_B.weight")
WRITTEN: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "LoRA": (LORA, {"peft_type": "LORA"}, "a LoRA adapter"),
    "LoRA of a classifier": ((*LORA, "score.weight"), {"peft_type": "LORA"}, "a LoRA adapter"),
    "LoRA of an embedding": (
        tuple(f"model.embed_tokens.{part}" for part in ("base_layer.weight", "lora_embedding_A", "lora_embedding_B")),
        {"peft_type": "LORA"},
        "a LoRA adapter",
    ),
    "DoRA": (
        (*LORA, "model.layers.0.self_attn.q_proj.lora_magnitude_vector"),
        {"peft_type": "LORA", "use_dora": True},
        "a DoRA adapter",
    ),
    "IA3": (("model.layers.0.mlp.down_proj.ia3_l",), {"peft_type": "IA3"}, "an IA3 adapter"),
    "LoHa": (
        tuple(f"model.layers.0.self_attn.q_proj.hada_w{part}" for part in ("1_a", "1_b", "2_a", "2_b")),
        {"peft_type": "LOHA"},
        "a LoHa adapter",
    ),
    "LoKr": (
        ("model.layers.0.self_attn.q_proj.lokr_w1", "model.layers.0.self_attn.q_proj.lokr_w2"),
        {"peft_type": "LOKR"},
        "a LoKr adapter",
    ),
    "VeRA": (
        ("model.layers.0.self_attn.q_proj.vera_lambda_b", "model.layers.0.self_attn.q_proj.vera_lambda_d"),
        {"peft_type": "VERA"},
        "a VeRA adapter",
    ),
}


def save_adapter(folder: Path, names: tuple[str, ...], config: dict[str, Any] | None, *, pickled: bool = False) -> Path:
    folder.mkdir()
    state = {name: torch.full((4, 32), 0.5) for name in names}
    if pickled:
        torch.save(state, folder / "adapter_model.bin")
    else:
        save_file(state, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    if config is not None:
        told = {"base_model_name_or_path": "/home/somebody/base", "r": 4} | config
        (folder / "adapter_config.json").write_text(json.dumps(told))
    return folder


def lora(folder: Path, **options: Any) -> Path:
    return save_adapter(folder, tuple(f"base_model.model.{name}" for name in LORA), {"peft_type": "LORA"}, **options)


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("kind", WRITTEN)
def test_an_adapter_is_told_by_its_settings_or_its_names(open_path, tmp_path, kind, told, pickled):
    names, config, said = WRITTEN[kind]
    whole = tuple(f"base_model.model.{name}" for name in names)
    checkpoint = open_path(save_adapter(tmp_path / "a", whole, config if told else None, pickled=pickled))
    assert f"This is {said} (" in checkpoint.manifest.adapter
    assert checkpoint.manifest.adapter.endswith(
        "), not a whole model: put it on its base model, on the command line with --adapter and in the app on "
        "Overview, or open the base model itself."
    )
    assert ("adapter_config.json" in checkpoint.manifest.adapter) == told
    assert "somebody" not in (checkpoint.manifest.folder.parent / "manifest.json").read_text()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"peft_type": "PREFIX_TUNING"}, "a prefix-tuning adapter"),
        ({"peft_type": "PROMPT_TUNING"}, "a prompt-tuning adapter"),
        ({"peft_type": "P_TUNING"}, "a p-tuning adapter"),
        ({"peft_type": "MULTITASK_PROMPT_TUNING"}, "an adapter of type MULTITASK_PROMPT_TUNING"),
        (None, "a PEFT adapter"),
    ],
)
def test_what_no_model_can_be_merged_with_is_not_to_be_merged(open_path, tmp_path, config, said):
    checkpoint = open_path(save_adapter(tmp_path / "a", ("prompt_embeddings",), config))
    assert f"This is {said} (" in checkpoint.manifest.adapter
    assert checkpoint.manifest.adapter.endswith("not a whole model: open its base model.")


def open_adapter(open_path: Callable[[Path], StagedCheckpoint], folder: Path, *, beside: bool) -> StagedCheckpoint:
    """Open a LoRA adapter, maybe with its base's config.json and tokenizer beside it."""
    adapter = lora(folder / "a")
    if beside:
        base = save_checkpoint(random_model("LlamaForCausalLM"), folder / "base", tokenizer=True)
        for path in base.iterdir():
            if path.suffix != ".safetensors":
                (adapter / path.name).write_bytes(path.read_bytes())
    return open_path(adapter)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("verb", sorted(CATALOG.keys() - ANSWERED))
def test_every_question_of_a_model_says_that_it_is_an_adapter(open_path, tmp_path, verb, beside):
    checkpoint = open_adapter(open_path, tmp_path, beside=beside)
    request = request_of(verb)
    required = [f.name for f in dataclasses.fields(request) if f.default is f.default_factory is dataclasses.MISSING]
    assert "LoRA adapter" in checkpoint.manifest.adapter
    with pytest.raises(InspectorError) as refused:
        answer(verb, checkpoint, progress=silent, **dict.fromkeys(required, "the cat"))
    assert str(refused.value) == checkpoint.manifest.adapter


@pytest.mark.parametrize("beside", [False, True])
def test_headers_and_tokenizer_are_shown_all_the_same(open_path, tmp_path, beside):
    checkpoint = open_adapter(open_path, tmp_path, beside=beside)
    found = answer("overview", checkpoint, progress=silent)
    assert found.warnings[0] == checkpoint.manifest.adapter
    assert (found.unique_parameters, found.architecture) == (2 * 4 * 32, None)
    if beside:
        assert len(answer("tokenize", checkpoint, texts=("the cat",), progress=silent).tokens) >= 2


def test_checks_name_it_and_advise_no_other_config(open_path, tmp_path):
    checks = check(open_path(lora(tmp_path / "a")), progress=silent)
    (alarm,) = [each for each in checks.checks if each.status != "ok"]
    assert "This is a LoRA adapter" in alarm.detail
    assert alarm.next_step == "To check a model, open the base model, or a model that the adapter was merged into."
    assert "config.json that was saved" not in " ".join(each.next_step for each in checks.checks)


def test_it_is_still_one_when_it_is_found_in_the_store(open_path, settings, tmp_path):
    checkpoint = open_path(lora(tmp_path / "a"))
    assert load_manifest(checkpoint.manifest.fingerprint, settings=settings).adapter == checkpoint.manifest.adapter


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_an_adapter_beside_a_model_is_not_read(open_path, tmp_path, weights):
    folder = save_checkpoint(random_model("LlamaForCausalLM"), tmp_path / "base")
    whole = open_path(folder)
    if weights.endswith(".bin"):
        torch.save(dict(whole.state), folder / weights)
        (folder / "model.safetensors").unlink()
    for path in lora(tmp_path / "a").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    both = open_path(folder)
    assert both.manifest.adapter == ""
    assert [file.name for file in both.manifest.files if file.format in ("safetensors", "pytorch")] == [weights]
    assert sorted(both.tensors.names) == sorted(whole.tensors.names)


@pytest.mark.parametrize(
    ("files", "names", "config"),
    [
        (["model.safetensors"], ["model.embed_tokens.weight", "lm_head.weight"], None),
        (["model.safetensors"], ["model.embed_tokens.weight"], {"peft_type": "LORA"}),  # merged, the settings forgotten
        (["model.safetensors"], ["rwkv.blocks.0.attention.w_lora.lora.0.weight", "rwkv.embeddings.weight"], None),
    ],
)
def test_a_model_is_no_adapter(files, names, config):
    assert describe_adapter(files, names, config) == ""


def test_a_model_whose_adapter_was_not_merged(open_path, tmp_path):
    folder = save_checkpoint(random_model("LlamaForCausalLM"), tmp_path / "a")
    state = {f"base_model.model.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    changed = "base_model.model.model.layers.0.self_attn.q_proj"
    state[f"{changed}.base_layer.weight"] = state.pop(f"{changed}.weight")
    state |= {
        f"{changed}.lora_A.default.weight": torch.ones(4, 32),
        f"{changed}.lora_B.default.weight": torch.ones(32, 4),
    }
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    said = "This is a model with a LoRA adapter (lora_A and lora_B in the names) that was not merged into it: "
    checks = check(open_path(folder), progress=silent)
    (found,) = [each for each in checks.checks if each.name == "Config and shapes"]
    assert found.detail == f"{said}merge it, and open the result."


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (
            ["pytorch_lora_weights.safetensors"],
            ["unet.down.0.to_k.lora.down.weight", "unet.down.0.to_k.lora.up.weight"],
        ),
        (["style.safetensors"], ["lora_unet_down_0_to_k.lora_down.weight", "lora_unet_down_0_to_k.alpha"]),
    ],
)
def test_other_programs_names(files, names):
    assert describe_adapter(files, names, None).startswith("This is a LoRA adapter (")
