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
from inspector.analyses.checks.result import Check, Checks
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.configs import LEFT_ALONE
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


def in_bytes(name: str, weight: torch.Tensor) -> State:
    """MLX's affine codes of 8 bits, a scale and a bias for each 32 inputs."""
    base, (outputs, inputs) = name.removesuffix(".weight"), weight.shape
    both = {f"{base}.{part}": torch.ones(outputs, inputs // 32, dtype=torch.bfloat16) for part in ("scales", "biases")}
    return {name: torch.ones(outputs, inputs // 4, dtype=torch.uint32), **both}


def in_floats_by_mlx(name: str, weight: torch.Tensor) -> State:
    """MLX's NVFP4: floats of 4 bits in words, and a byte for each 16."""
    outputs, inputs = weight.shape
    return {
        name: torch.ones(outputs, inputs // 8, dtype=torch.uint32),
        f"{name.removesuffix('.weight')}.scales": torch.ones(outputs, inputs // 16, dtype=torch.uint8),
    }


def in_packed_words(name: str, weight: torch.Tensor) -> State:
    """Compressed-tensors' codes of 4 bits in words."""
    outputs, inputs = weight.shape
    return {
        f"{name}_packed": torch.ones(outputs, inputs // 8, dtype=torch.int32),
        f"{name}_scale": torch.ones(outputs, 1, dtype=torch.bfloat16),
        f"{name}_shape": torch.tensor(weight.shape),
    }


def in_packed_floats(name: str, weight: torch.Tensor) -> State:
    """Compressed-tensors' NVFP4."""
    outputs, inputs = weight.shape
    return {
        f"{name}_packed": torch.ones(outputs, inputs // 2, dtype=torch.uint8),
        f"{name}_scale": torch.ones(outputs, inputs // 16).to(torch.float8_e4m3fn),
        f"{name}_global_scale": torch.ones(1),
    }


def in_float8(name: str, weight: torch.Tensor) -> State:
    """Compressed-tensors' float8 with a scale a row."""
    return {name: weight.to(torch.float8_e4m3fn), f"{name}_scale": torch.ones(len(weight), 1, dtype=torch.bfloat16)}


def in_float8_by_seven(name: str, weight: torch.Tensor) -> State:
    """Float8 with scales that nobody here understands."""
    return {name: weight.to(torch.float8_e4m3fn), f"{name}_scale": torch.ones(7)}


TENSORS = {"quant_method": "compressed-tensors"}
SCHEMES = {
    "blocks": (in_blocks, "weight_scale_inv", {"quant_method": "fp8", "weight_block_size": [128, 128]}),
    "rows": (in_rows, "weight_scale", TENSORS),
    "words": (in_words, "scales", {"quant_method": "gptq", "bits": 4}),
}
FAMILIES = ("LlamaForCausalLM", "Qwen3ForCausalLM", "MixtralForCausalLM")
UNREAD = "in a quantized format that this tool does not support"
Q = "model.layers.1.self_attn.q_proj"
Stored = Callable[..., Check]
Code = Callable[[str, torch.Tensor], State]
Change = Callable[[State], Any]
Coded = Callable[..., Checks]


def named(checks: Checks, name: str = words.TAB) -> Check:
    return next(each for each in checks.checks if each.name == name)


@pytest.fixture
def coded(tmp_path: Path, open_path: Callable[[Path], StagedCheckpoint]) -> Coded:
    """The checks of a model whose matrices are quantized, each as is given for a part of its name."""

    def run(architecture: str, codes: dict[str, Code], said: dict[str, Any], change: Change | None = None) -> Checks:
        folder = save_checkpoint(random_model(architecture), tmp_path / "coded", tokenizer=False)
        state: State = {}
        for name, tensor in load_file(folder / "model.safetensors").items():
            code = next((code for part, code in codes.items() if part in name and tensor.dim() == 2), None)
            state |= code(name, tensor) if code else {name: tensor}
        if change:
            change(state)
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text()) | {"quantization_config": said}
        (folder / "config.json").write_text(json.dumps(config))
        return check(open_path(folder), values="none", progress=silent)

    return run


@pytest.fixture
def stored(coded: Coded) -> Stored:
    """The check of a model whose attention is quantized, once its tensors were changed."""

    def run(architecture: str, scheme: str, change: Change | None = None) -> Check:
        code, _, said = SCHEMES[scheme]
        return named(coded(architecture, {".self_attn.": code}, said, change))

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


@pytest.mark.parametrize("architecture", FAMILIES)
def test_all_scales_of_float8_are_lost(stored: Stored, architecture: str) -> None:
    def lose(state: State) -> None:
        for name in [each for each in state if each.endswith("_scale_inv")]:
            del state[name]

    found = stored(architecture, "blocks", lose)
    assert {(each.problem, each.severity, each.id) for each in found.evidence} == {
        (words.NO_COMPANION, "critical", "loading.quantized.missing")
    }
    assert len(found.evidence) == 8  # four matrices of two layers
    assert "(fp8), and no float8 weight in the files has a scale" in found.detail


def test_float8_of_which_nothing_is_declared_is_no_finding(coded: Coded) -> None:
    plain = {".self_attn.": lambda name, weight: {name: weight.to(torch.float8_e4m3fn)}}
    assert named(coded("LlamaForCausalLM", plain, {})).status == "ok"


@pytest.mark.parametrize("architecture", FAMILIES)
@pytest.mark.parametrize(
    ("scheme", "key", "listed"),
    [
        ("rows", "ignore", Q),
        ("rows", "ignore", "re:.*layers.1.*q_proj$"),
        ("blocks", "modules_to_not_convert", "model.layers.1.self_attn.q_proj"),
        ("blocks", "modules_to_not_convert", "1.self_attn.q_proj"),
        ("words", "modules_to_not_convert", Q),
    ],
)
def test_a_module_that_config_leaves_alone_and_that_is_quantized(
    coded: Coded, architecture: str, scheme: str, key: str, listed: str
) -> None:
    code, _, said = SCHEMES[scheme]
    found = named(coded(architecture, {".self_attn.": code}, said | {key: ["lm_head", listed]}))
    assert [(each.subject, each.problem, each.severity) for each in found.evidence] == [
        (Q, words.CODES_LEFT_ALONE, "major")
    ]
    assert f"in {key} ({listed})" in found.detail
    assert found.evidence[0].id == "loading.quantized.left-alone"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "listed", ["lm_head", "re:.*lm_head", "re:.*mlp", "re:.*q_proj(?=x)", "re:(a+)+$", "q_pro", "_proj"]
)
def test_what_is_left_alone_and_stored_plainly_is_no_finding(coded: Coded, scheme: str, listed: str) -> None:
    code, _, said = SCHEMES[scheme]
    for key in LEFT_ALONE:
        assert named(coded("LlamaForCausalLM", {".self_attn.": code}, said | {key: [listed]})).status == "ok"


@pytest.mark.parametrize(
    "listed",
    [
        [1],
        [None],
        [["lm_head"]],
        {Q: 1},
        Q,
        ["\ud800"],
        ["a" * 2_000],
        [f"x{'.x' * 400}"] * 3_000,
        ["re:(a+)+$"] * 3_000,
    ],
)
def test_lists_of_no_modules_or_of_far_too_many_are_no_finding(coded: Coded, listed: Any) -> None:
    for key in LEFT_ALONE:
        checks = coded("LlamaForCausalLM", {".self_attn.": in_blocks}, {"quant_method": "fp8", key: listed})
        assert named(checks).status == "ok"


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


def says_unread(checks: Checks, codes: str) -> bool:
    """Whether all that is said of how weights are stored is that some codes cannot be read, which is minor."""
    types, loading = named(checks, "Number types"), named(checks)
    told = codes in types.detail and f"{codes} (" in loading.detail and UNREAD in loading.detail
    return told and (types.severity, loading.severity, loading.evidence) == ("minor", "minor", ())


def in_words_of_10(name: str, weight: torch.Tensor) -> State:
    """GPTQ's, in groups of 10 inputs, the last of which may have fewer."""
    state = in_words(name, weight)
    groups = -(-weight.shape[1] // 10)
    return {name: each if name.endswith("qweight") else each.repeat(groups, 1) for name, each in state.items()}


def test_gptq_of_inputs_that_are_no_multiple_of_the_group(coded: Coded) -> None:
    said = {"quant_method": "gptq", "bits": 4, "group_size": 10}
    checks = coded("LlamaForCausalLM", {"_proj": in_words_of_10}, said)
    assert {(each.name, each.status) for each in checks.checks} >= {(words.TAB, "ok"), ("Number types", "ok")}
    assert named(checks).evidence == ()


def test_gptq_of_a_group_that_nobody_states_is_not_read_and_no_defect(coded: Coded) -> None:
    """AutoGPTQ stores 3 groups of 320 inputs, the last with fewer; config.json of this one lacks the size."""
    base = "model.layers.1.mlp.down_proj"

    def change(state: State) -> None:
        del state[f"{base}.weight"]
        state |= in_words(f"{base}.weight", torch.ones(32, 320))
        state |= {f"{base}.{part}": state[f"{base}.{part}"].repeat(3, 1) for part in ("qzeros", "scales")}

    checks = coded("LlamaForCausalLM", {".self_attn.": in_words}, SCHEMES["words"][2], change)
    assert says_unread(checks, f"{base}.qweight")


def test_schemes_of_one_spelling_that_differ_in_what_is_beside_codes(coded: Coded) -> None:
    """MLX keeps a head of 8 bits, with biases, beside NVFP4, which has none and is not read."""
    said = {"group_size": 16, "bits": 4, "mode": "nvfp4", "lm_head": {"group_size": 32, "bits": 8}}
    checks = coded("LlamaForCausalLM", {"lm_head": in_bytes, "_proj": in_floats_by_mlx}, said)
    assert says_unread(checks, "model.layers.0.mlp.down_proj.weight")


def test_a_lost_bias_of_many(coded: Coded) -> None:
    said = {"group_size": 32, "bits": 8}
    checks = coded("LlamaForCausalLM", {".self_attn.": in_bytes}, said, lambda state: state.pop(f"{Q}.biases"))
    assert [(each.subject, each.problem, each.severity) for each in named(checks).evidence] == [
        (f"{Q}.weight", words.NO_COMPANION, "critical")
    ]


@pytest.mark.parametrize("rest", [in_packed_words, in_packed_floats])
def test_two_schemes_that_spell_their_scales_alike(coded: Coded, rest: Code) -> None:
    """The scale of an attention in float8 is none that is left over of the other scheme."""
    checks = coded("LlamaForCausalLM", {".mlp.": rest, ".self_attn.": in_float8}, TENSORS)
    assert (named(checks).status, named(checks).evidence) == ("ok", ())


def test_scales_of_codes_that_are_not_read_are_not_left_over(coded: Coded) -> None:
    codes = {".mlp.": in_packed_words, ".self_attn.": in_float8_by_seven}
    assert says_unread(coded("LlamaForCausalLM", codes, TENSORS), "model.layers.0.self_attn.k_proj.weight")


def test_a_scale_is_left_over_beside_two_schemes(coded: Coded) -> None:
    codes = {".mlp.": in_packed_words, ".self_attn.": in_float8}
    lost = "model.layers.1.mlp.down_proj.weight"
    checks = coded("LlamaForCausalLM", codes, TENSORS, lambda state: state.pop(f"{lost}_packed"))
    assert {(each.subject, each.problem) for each in named(checks).evidence} >= {
        (f"{lost}_scale", words.SPARE_COMPANION),
        (f"{lost}_shape", words.SPARE_COMPANION),
    }
