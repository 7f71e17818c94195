"""What keeps a file from being a model is named: placeholders without numbers, experts lost or stored twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.compute import check
from inspector.analyses.checks.result import Check
from inspector.analyses.embeddings.compute import embeddings
from inspector.analyses.lens.compute import lens
from inspector.analyses.overview.compute import overview
from inspector.analyses.sharing.compute import sharing
from inspector.errors import InspectorError
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.models.quantized_files import IN_GPTQ, LAYER, WEIGHT, in_four_bits_by_gptq

State = dict[str, torch.Tensor]
# Class -> where the experts of its layer 1 are in the file, and the last part of their projections' names.
EXPERTS = {
    "MixtralForCausalLM": ("model.layers.1.block_sparse_moe.experts", ("w1", "w2", "w3")),
    "Qwen2MoeForCausalLM": ("model.layers.1.mlp.experts", ("gate_proj", "up_proj", "down_proj")),
    "Qwen3MoeForCausalLM": ("model.layers.1.mlp.experts", ("gate_proj", "up_proj", "down_proj")),
    "DeepseekV3ForCausalLM": ("model.layers.1.mlp.experts", ("gate_proj", "up_proj", "down_proj")),
}


def changed(folder: Path, model: Any, change: Callable[[State], State], *, pickled: bool = False) -> Path:
    """Save a model with other tensors."""
    save_checkpoint(model, folder)
    path = folder / "model.safetensors"
    state = change(load_file(path))
    if pickled:
        path.unlink()
        torch.save(state, folder / "pytorch_model.bin")
    else:
        save_file(state, path, metadata={"format": "pt"})
    return folder


def shapes(checkpoint) -> Check:
    """The check of config.json and shapes; the others either wait for it or are content."""
    found = check(checkpoint, progress=silent).checks
    assert {each.severity for each in found[1:]}.isdisjoint({"critical", "major"})
    assert not any("different models" in each.detail or "not fit" in each.detail for each in found)
    return found[0]


@pytest.mark.parametrize("architecture", EXPERTS)
@pytest.mark.parametrize("what", ["expert", "projection", "two experts"])
def test_lost_experts_are_named(tmp_path, open_path, architecture, what):
    base, projections = EXPERTS[architecture]
    lost = {
        "expert": [f"{base}.3.{each}.weight" for each in projections],
        "projection": [f"{base}.1.{projections[1]}.weight"],
        "two experts": [f"{base}.{number}.{each}.weight" for number in (0, 2) for each in projections],
    }[what]
    folder = changed(
        tmp_path / "a", random_model(architecture), lambda state: {n: t for n, t in state.items() if n not in lost}
    )
    said = {
        "expert": "a lacks 3 tensors of expert 3 of layer 1 (such as ",
        "projection": f"a lacks 1 tensor of expert 1 of layer 1 ({lost[0]})",
        "two experts": "a lacks 6 tensors of expert 0 of layer 1, expert 2 of layer 1 (such as ",
    }[what]
    opened = open_path(folder)
    for ask in (lambda: lens(opened, progress=silent, text="w1 w2"), lambda: sharing(opened, progress=silent)):
        with pytest.raises(InspectorError) as refused:
            ask()
        assert str(refused.value).startswith(said)
    found = shapes(opened)
    assert found.detail.startswith(said)
    assert {each.subject for each in found.evidence} == set(lost)
    assert {each.problem for each in found.evidence} == {"not in the file"}


@pytest.mark.parametrize("architecture", EXPERTS)
@pytest.mark.parametrize("layers", [(1,), (0, 1)])
def test_experts_that_are_stored_twice_are_named(tmp_path, open_path, architecture, layers):
    model = random_model(architecture)
    fused = {
        name: each.clone()
        for name, each in model.state_dict().items()
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")) and int(name.split(".")[2]) in layers
    }
    opened = open_path(changed(tmp_path / "a", model, lambda state: state | fused))
    there = [each for each in layers if any(f".{each}." in name for name in fused)]  # DeepSeek's first is dense
    said = f"a stores the experts of {', '.join(f'layer {each}' for each in there)} twice, one by one (such as "
    with pytest.raises(InspectorError) as refused:
        lens(opened, progress=silent, text="w1 w2")
    assert str(refused.value).startswith(said)
    found = shapes(opened)
    assert found.detail.startswith(said)
    assert {each.subject for each in found.evidence} == set(fused)


@pytest.mark.parametrize("wanted", [3, 6])
def test_another_number_of_experts_may_be_a_matter_of_config(tmp_path, open_path, wanted):
    """The routers have as many rows as there are experts: no expert is lost."""
    folder = save_checkpoint(random_model("Qwen3MoeForCausalLM"), tmp_path / "a")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    count = next(key for key in ("num_experts", "num_local_experts") if key in config)
    (folder / "config.json").write_text(json.dumps(config | {count: wanted}), encoding="utf-8")
    found = shapes(open_path(folder))
    assert found.detail == f"a has 4 experts in each layer, but config.json asks for {wanted}."
    assert found.next_step == "Compare config.json with the original model's."


@pytest.mark.parametrize("ending", ["qweight", "weight_packed"])
def test_a_weight_beside_its_own_codes_is_there_twice(stored, plain, ending):
    """Which of the two a loader takes depends on the loader."""
    if ending == "qweight":
        coded = stored(lambda weight: in_four_bits_by_gptq(zero=1)(weight) | {WEIGHT: weight}, quantization=IN_GPTQ)
    else:
        parts = {
            f"{LAYER}.weight_packed": torch.zeros(64, 4, dtype=torch.int32),
            f"{LAYER}.weight_scale": torch.ones(64, 1),
            f"{LAYER}.weight_shape": torch.tensor([64, 32]),
        }
        coded = stored(lambda weight: parts | {WEIGHT: weight})
    assert list(coded.quantized) == [WEIGHT]
    said = f"b stores 1 weight twice, plainly and as codes ({WEIGHT})"
    for ask in (lambda: lens(coded, progress=silent, text="w1 w2"), lambda: sharing(coded, progress=silent)):
        with pytest.raises(InspectorError) as refused:
            ask()
        assert str(refused.value).startswith(said)
    assert shapes(coded).detail == f"{said}."
    assert plain.stored_twice is None


def emptied(some: Callable[[str, torch.Tensor], bool]) -> Callable[[State], State]:
    return lambda state: {name: torch.empty(0) if some(name, each) else each for name, each in state.items()}


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("architecture", ["BertModel", "GPT2LMHeadModel", "LlamaForCausalLM", "Qwen3MoeForCausalLM"])
@pytest.mark.parametrize("which", ["matrices of layers", "one", "all"])
def test_tensors_without_numbers_are_placeholders(tmp_path, open_path, architecture, which, pickled):
    model = random_model(architecture)
    chosen = {
        "matrices of layers": lambda name, each: each.dim() > 1 and ("layer" in name or ".h." in name),
        "one": lambda name, each: each.dim() > 1 and ".1." in name and ("up_proj" in name or "c_fc" in name
                                                                        or "intermediate" in name),
        "all": lambda *_: True,
    }[which]  # fmt: skip
    opened = open_path(changed(tmp_path / "a", model, emptied(chosen), pickled=pickled))
    empty = [each.name for each in opened.tensors if 0 in each.shape]
    said = f"{len(empty)} of {len(opened.tensors)} tensors of a contain no numbers ("
    questions = [lambda: lens(opened, progress=silent, text="w1 w2"), lambda: sharing(opened, progress=silent)]
    for ask in [*questions, *([lambda: embeddings(opened, progress=silent)] if which == "all" else [])]:
        with pytest.raises(InspectorError) as refused:
            ask()
        assert str(refused.value).startswith(said)
        assert "zero_to_fp32.py" in str(refused.value)
    found = shapes(opened)
    assert found.detail.startswith(said)
    assert found.next_step.startswith("If the run was sharded, gather its weights")
    assert {each.subject for each in found.evidence} == set(empty)
    assert any(f"{len(empty)} of the {len(opened.tensors)} tensors contain no numbers" in each
               for each in overview(opened, progress=silent).warnings)  # fmt: skip


@pytest.mark.parametrize("name", ["model.layers.0.mlp.up_proj.weight", "model.norm.weight"])
def test_no_part_of_complex_numbers_is_left_out(tmp_path, open_path, name):
    model = random_model("LlamaForCausalLM")
    opened = open_path(changed(tmp_path / "a", model, lambda state: state | {name: state[name] * (1 + 1j)}))
    said = f"{name} of a holds complex numbers, and LlamaForCausalLM computes with real ones"
    for ask in (lambda: lens(opened, progress=silent, text="w1 w2"), lambda: sharing(opened, progress=silent)):
        with pytest.raises(InspectorError) as refused:
            ask()
        assert str(refused.value).startswith(said)
    assert any(said in each.detail for each in check(opened, progress=silent).checks)


def test_no_part_of_a_complex_embedding_is_left_out(tmp_path, open_path):
    name = "model.embed_tokens.weight"
    model = random_model("LlamaForCausalLM")
    opened = open_path(changed(tmp_path / "a", model, lambda state: state | {name: state[name] * (1 + 1j)}))
    with pytest.raises(InspectorError, match=f"{name} of a holds complex numbers"):
        embeddings(opened, progress=silent)


def test_complex_numbers_that_no_class_loads_change_nothing(tmp_path, open_path):
    """Meta's files have the angles of rotary positions."""
    angles = {"freqs_cis": torch.ones(4, 4, dtype=torch.complex64)}
    opened = open_path(changed(tmp_path / "a", random_model("LlamaForCausalLM"), lambda state: state | angles))
    assert lens(opened, progress=silent, text="w1 w2").layers == ("embeddings", "1", "2")
    assert embeddings(opened, progress=silent).rows == len(model_rows(opened))


def model_rows(checkpoint) -> torch.Tensor:
    return checkpoint.read(["model.embed_tokens.weight"])["model.embed_tokens.weight"]


def test_a_mark_without_numbers_is_no_placeholder(tmp_path, open_path):
    """Image tools write an empty tensor that says that the others are scaled."""
    mark = {"scaled_fp8": torch.empty(0, dtype=torch.float8_e4m3fn)}
    opened = open_path(changed(tmp_path / "a", random_model("LlamaForCausalLM"), lambda state: state | mark))
    assert lens(opened, progress=silent, text="w1 w2").layers == ("embeddings", "1", "2")
    assert not any("no numbers" in each for each in overview(opened, progress=silent).warnings)
