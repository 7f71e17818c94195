"""Quantized weights that lack a scale, have one of another shape, or scales that are left over, in three schemes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.checks import words_loading as words
from inspector.analyses.checks.compute import check
from inspector.analyses.checks.result import Check
from inspector.models.checkpoint import Checkpoint
from tests.conftest import silent
from tests.families import random_model, save_checkpoint

State = dict[str, torch.Tensor]


def in_blocks(name: str, weight: torch.Tensor) -> State:
    """DeepSeek's: float8 with a scale for each block."""
    return {name: weight.to(torch.float8_e4m3fn), f"{name}_scale_inv": torch.ones(1, 1)}


def in_rows(name: str, weight: torch.Tensor) -> State:
    """Compressed-tensors': whole numbers of 8 bits with a scale a row."""
    return {name: weight.to(torch.int8), f"{name}_scale": torch.ones(len(weight), 1)}


def in_words(name: str, weight: torch.Tensor) -> State:
    """GPTQ's: four bits in words, zero points and scales beside them."""
    outputs, inputs = weight.shape
    base = name.removesuffix(".weight")
    return {
        f"{base}.qweight": torch.ones(inputs // 8, outputs, dtype=torch.int32),
        f"{base}.qzeros": torch.ones(1, outputs // 8, dtype=torch.int32),
        f"{base}.scales": torch.ones(1, outputs, dtype=torch.float16),
    }


SCHEMES = {
    "blocks": (in_blocks, "weight_scale_inv", {"quant_method": "fp8", "weight_block_size": [128, 128]}),
    "rows": (in_rows, "weight_scale", {"quant_method": "compressed-tensors"}),
    "words": (in_words, "scales", {"quant_method": "gptq", "bits": 4}),
}
FAMILIES = ("LlamaForCausalLM", "Qwen3ForCausalLM", "MixtralForCausalLM")
Q = "model.layers.1.self_attn.q_proj"
Stored = Callable[..., Check]


@pytest.fixture
def stored(tmp_path: Path, open_path: Callable[[Path], Checkpoint]) -> Stored:
    """The check of a model whose attention is quantized, once its tensors were changed."""

    def run(architecture: str, scheme: str, change: Callable[[State], Any] | None = None) -> Check:
        code, _, said = SCHEMES[scheme]
        folder = save_checkpoint(random_model(architecture), tmp_path / "coded", tokenizer=False)
        state: State = {}
        for name, tensor in load_file(folder / "model.safetensors").items():
            state |= code(name, tensor) if ".self_attn." in name and name.endswith("proj.weight") else {name: tensor}
        if change:
            change(state)
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text()) | {"quantization_config": said}
        (folder / "config.json").write_text(json.dumps(config))
        checks = check(open_path(folder), values="none", progress=silent)
        return next(each for each in checks.checks if each.name == words.TAB)

    return run


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("architecture", FAMILIES)
def test_scales_that_are_all_there_are_no_finding(stored: Stored, architecture: str, scheme: str) -> None:
    found = stored(architecture, scheme)
    assert (found.status, found.evidence) == ("ok", ())


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("architecture", FAMILIES)
def test_one_lost_scale_of_many(stored: Stored, architecture: str, scheme: str) -> None:
    lost = f"{Q}.{SCHEMES[scheme][1]}"
    found = stored(architecture, scheme, lambda state: state.pop(lost))
    assert [(each.problem, each.severity) for each in found.evidence] == [(words.NO_COMPANION, "critical")]
    assert lost in found.detail
    assert found.evidence[0].id == "loading.quantized.missing"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("architecture", FAMILIES)
def test_a_scale_of_another_shape(stored: Stored, architecture: str, scheme: str) -> None:
    name = f"{Q}.{SCHEMES[scheme][1]}"
    found = stored(architecture, scheme, lambda state: state.update({name: torch.ones(3, 5).to(state[name].dtype)}))
    assert [(each.problem, each.severity) for each in found.evidence] == [(words.OTHER_COMPANION, "critical")]


@pytest.mark.parametrize("scheme", ["blocks", "rows"])
@pytest.mark.parametrize("architecture", FAMILIES)
def test_a_scale_of_a_weight_that_is_stored_plainly(stored: Stored, architecture: str, scheme: str) -> None:
    plain = {f"{Q}.weight": torch.ones(32, 32)}
    found = stored(architecture, scheme, lambda state: state.update(plain))
    assert [(each.subject, each.problem, each.severity) for each in found.evidence] == [
        (f"{Q}.{SCHEMES[scheme][1]}", words.SPARE_COMPANION, "minor")
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scale_of_nothing(stored: Stored, scheme: str) -> None:
    codes = f"{Q}.{'qweight' if scheme == 'words' else 'weight'}"
    found = stored("LlamaForCausalLM", scheme, lambda state: state.pop(codes))
    assert {each.problem for each in found.evidence} == {words.SPARE_COMPANION}
