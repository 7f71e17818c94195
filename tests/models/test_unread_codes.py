"""Codes whose scales nobody here understands: found however they are spelled, and nothing is computed from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.compute import check
from inspector.analyses.compare.compute import compare
from inspector.analyses.embeddings.compute import embeddings
from inspector.analyses.lens.compute import lens
from inspector.analyses.overview.compute import overview
from inspector.analyses.plausibility.compute import plausibility
from inspector.analyses.sharing.compute import sharing
from inspector.errors import InspectorError
from inspector.models.quantized.companions import Unread, find_unread
from inspector.store.manifests.columns import TensorInfo, Tensors
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, RENAMED, UNLISTED, random_model, save_checkpoint
from tests.models.quantized_files import LAYER, WEIGHT, problems

UNSUPPORTED = "in a quantized format that this tool does not support"
FLOAT8 = torch.float8_e4m3fn
LINEAR = {
    "BertForMaskedLM": LAYER,
    "LlamaForCausalLM": "model.layers.0.mlp.up_proj",
    "GPT2LMHeadModel": "transformer.h.0.mlp.c_fc",
    "T5ForConditionalGeneration": "encoder.block.0.layer.1.DenseReluDense.wi",
}
EMBEDDED = {
    "BertForMaskedLM": "bert.embeddings.word_embeddings",
    "LlamaForCausalLM": "model.embed_tokens",
    "GPT2LMHeadModel": "transformer.wte",
    "T5ForConditionalGeneration": "shared",
}
Change = Callable[[str, torch.Tensor], dict[str, torch.Tensor]]


def int8(weight: torch.Tensor) -> torch.Tensor:
    return weight.mul(50).round().clamp(-127, 127).to(torch.int8)


def words(rows: int, columns: int) -> torch.Tensor:
    return torch.randint(-(2**31), 2**31 - 1, (rows, columns), dtype=torch.int32)


# Spelling -> what stands in the place of a module's weight.
SPELLINGS: dict[str, Change] = {
    "SCB of one": lambda base, w: {f"{base}.weight": int8(w), f"{base}.SCB": torch.ones(1)},
    "a second scale": lambda base, w: {
        f"{base}.weight": w.to(FLOAT8), f"{base}.weight_scale": torch.ones(1), f"{base}.weight_scale_2": torch.ones(1)},
    "two scales": lambda base, w: {
        f"{base}.weight": w.to(FLOAT8), f"{base}.scale_weight": torch.ones(1), f"{base}.smooth_scale": torch.ones(4)},
    "absmax alone": lambda base, w: {
        f"{base}.weight": torch.zeros(w.numel() // 2, 1, dtype=torch.uint8), f"{base}.weight.absmax": torch.ones(9)},
    "scales a row": lambda base, w: {f"{base}.weight": int8(w), f"{base}.scales": torch.ones(len(w), 1)},
    "s": lambda base, w: {f"{base}.weight": w.to(FLOAT8), f"{base}.s": torch.ones(1)},
    "amax a row": lambda base, w: {f"{base}.weight": w.to(FLOAT8), f"{base}.amax": torch.ones(len(w))},
    "a quantizer's": lambda base, w: {
        f"{base}.weight": w.to(FLOAT8), f"{base}.weight_quantizer._amax": torch.ones(1)},
    "beside the module": lambda base, w: {f"{base}.weight": w.to(FLOAT8), f"{base}_scale": torch.ones(1)},
    "EXL2": lambda base, _: {
        f"{base}.q_weight": words(4, 32), f"{base}.q_scale": words(2, 4), f"{base}.q_scale_max": torch.ones(2)},
    "EXL3": lambda base, w: {
        f"{base}.trellis": torch.zeros(4, 2, 32, dtype=torch.int16), f"{base}.suh": torch.ones(len(w))},
    "HQQ": lambda base, w: {
        f"{base}.W_q": torch.zeros(len(w), 16, dtype=torch.uint8), f"{base}.scale": torch.ones(64),
        f"{base}.zero": torch.ones(64), f"{base}.shape": torch.tensor(w.shape)},
    "AQLM": lambda base, w: {
        f"{base}.codes": torch.zeros(len(w), 4, 1, dtype=torch.int8), f"{base}.codebooks": torch.ones(1, 8, 1, 4)},
    "quanto": lambda base, w: {
        f"{base}.weight._data": int8(w), f"{base}.weight._scale": torch.ones(len(w), 1),
        f"{base}.input_scale": torch.ones(())},
    "torchao": lambda base, w: {f"{base}._weight_qdata": int8(w), f"{base}._weight_scale": torch.ones(len(w), 1)},
    "no scale": lambda base, w: {f"{base}.weight": int8(w)},
}  # fmt: skip


def save_with(model: Any, folder: Path, base: str, change: Change) -> Path:
    """Save a model with what `change` makes of a module's weight in its place."""
    save_checkpoint(model, folder)
    tensors = load_file(folder / "model.safetensors")
    weight = tensors.pop(f"{base}.weight")
    tensors |= {name: tensor.contiguous() for name, tensor in change(base, weight).items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def advice(found: Any) -> str:
    """All that the checks say, but for that a model of random numbers looks untrained."""
    said = [each for each in found.checks if each.name != "Under-trained tokens"]
    return " ".join(
        text for each in said for text in (each.detail, each.next_step, *(part.detail for part in each.evidence))
    )


@pytest.mark.parametrize("architecture", LINEAR)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_nothing_is_computed_from_codes(tmp_path, open_path, spelling, architecture):
    """Every question names them, in whichever family; no scale is called left over, and no config.json wrong."""
    model, base = random_model(architecture), LINEAR[architecture]
    plain = open_path(save_checkpoint(model, tmp_path / "a"))
    coded = open_path(save_with(model, tmp_path / "b", base, SPELLINGS[spelling]))
    assert list(coded.unread.codes.values()) == [f"{base}.weight"]
    (codes,) = coded.unread.codes
    questions = [lambda: lens(coded, progress=silent, text="w1 w2"), lambda: sharing(coded, progress=silent)]
    if architecture not in ENCODER_DECODER:
        questions.append(lambda: plausibility(coded, progress=silent, text="w1 w2"))
    for ask in questions:
        with pytest.raises(InspectorError, match=UNSUPPORTED) as refused:
            ask()
        assert codes in str(refused.value)
    found = check(coded, progress=silent)
    assert {each.status for each in found.checks} == {"ok", "warn"}
    assert codes in next(each.detail for each in found.checks if each.name == "Number types")
    said = advice(found)
    for harmful in ("save the model", "config.json that", "random", "never loaded", "other models"):
        assert harmful not in said
    result: Any = compare(plain, progress=silent, other=coded.manifest.fingerprint)
    assert "changed" not in result.counts
    (row,) = result.tensors[result.tensors["name"] == f"{base}.weight"].to_dict("records")
    assert row["status"] == "not compared"
    assert math.isnan(row["relative_change"])
    shown, truth = overview(coded, progress=silent), overview(plain, progress=silent)
    assert shown.heads == truth.heads
    assert (shown.unique_parameters, shown.listed_parameters) == (truth.unique_parameters, truth.listed_parameters)
    assert any(codes in warning for warning in shown.warnings)


@pytest.mark.parametrize("architecture", EMBEDDED)
@pytest.mark.parametrize("spelling", ["s", "scales a row", "absmax alone", "EXL2", "a second scale"])
def test_embeddings_in_codes_are_not_read_nor_is_another_matrix_for_them(tmp_path, open_path, spelling, architecture):
    changes = {"tie_word_embeddings": False} if architecture == "LlamaForCausalLM" else {}
    model, base = random_model(architecture, **changes), EMBEDDED[architecture]
    coded = open_path(save_with(model, tmp_path / "b", base, SPELLINGS[spelling]))
    (codes,) = coded.unread.codes
    for ask in (lambda: embeddings(coded, progress=silent), lambda: lens(coded, progress=silent, text="w1 w2")):
        with pytest.raises(InspectorError, match=UNSUPPORTED) as refused:
            ask()
        assert codes in str(refused.value)
    found = check(coded, progress=silent)
    assert {each.status for each in found.checks} == {"ok", "warn"}
    assert "cannot be read" not in {part.problem for each in found.checks for part in each.evidence}


PACKINGS: dict[str, Callable[[torch.Tensor], Mapping[str, torch.Tensor]]] = {
    "words": lambda w: {
        "_packed": torch.zeros(*w.shape[:2], w.shape[2] // 8, dtype=torch.int32),
        "_scale": torch.rand(*w.shape[:2], 1), "_shape": torch.tensor(w.shape[1:])},
    "int8": lambda w: {"": int8(w), "_scales": torch.rand(w.shape[0], 1)},
    "float8": lambda w: {"": w.to(FLOAT8), "_s": torch.rand(w.shape[0])},
    "bytes": lambda w: {"_qweight": torch.zeros(*w.shape[:2], w.shape[2] // 2, dtype=torch.uint8),
                        "_absmax": torch.rand(w.shape[0], 8)},
    "no scale": lambda w: {"": int8(w)},
}  # fmt: skip


@pytest.mark.parametrize("packing", PACKINGS)
def test_fused_experts_in_codes_are_one_thing_in_every_answer(tmp_path, open_path, packing):
    """Neither missing, nor left over, nor read."""
    model = random_model("Qwen3MoeForCausalLM")
    folder = save_checkpoint(model, tmp_path / "a")
    tensors = {name: each for name, each in load_file(folder / "model.safetensors").items() if ".experts." not in name}
    for name, each in model.state_dict().items():
        if ".experts." in name:
            tensors |= {f"{name}{ending}": part for ending, part in PACKINGS[packing](each).items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    coded = open_path(folder)
    for ask in (lambda: lens(coded, progress=silent, text="w1 w2"), lambda: sharing(coded, progress=silent)):
        with pytest.raises(InspectorError, match=rf"\.experts\.(down|gate_up)_proj.*{UNSUPPORTED}"):
            ask()
    found = check(coded, progress=silent)
    said = advice(found)
    for wrong in ("not in the file", "save the model", "random", "dequantized", "config.json that"):
        assert wrong not in said
    assert len(coded.unread.codes) == 4
    assert overview(coded, progress=silent).unique_parameters == sum(each.numel() for each in model.parameters())


def header(name: str, tensor: torch.Tensor, dtype: torch.dtype) -> TensorInfo:
    shaped = torch.empty(tensor.shape, dtype=dtype, device="meta")
    kind = str(dtype).removeprefix("torch.")
    return TensorInfo(
        name, kind, tuple(shaped.shape), shaped.stride(), "a", 0, shaped.nbytes, f"a:{name}", shaped.nbytes
    )


@pytest.mark.parametrize("architecture", sorted(MODELS | UNLISTED | RENAMED | ENCODER_DECODER))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, FLOAT8])
def test_no_tensor_of_a_class_is_taken_for_codes(architecture, dtype):
    """Also where matrices alone were cast to float8: what a module has besides a weight is no scale of it."""
    state = random_model(architecture).state_dict()
    stored = [
        header(name, each, dtype if each.is_floating_point() and each.dim() > 1 else each.dtype)
        for name, each in state.items()
    ]
    assert find_unread(Tensors.of(stored), {}) == Unread({}, {})


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("architecture", ["LlamaForCausalLM", "BertForMaskedLM", "GPT2LMHeadModel"])
def test_float8_with_scale_weight_is_multiplied_by_it(tmp_path, open_path, architecture, rows):
    """The numbers are those of the product; of a Conv1D, whose axes are turned, only one scale for all is certain."""
    model, base = random_model(architecture), LINEAR[architecture]
    kept = []

    def change(base: str, weight: torch.Tensor) -> dict[str, torch.Tensor]:
        scale = (weight.abs().amax(1) if rows else weight.abs().max().reshape(1)) / 448
        kept.append((weight / scale.reshape(-1, 1)).to(FLOAT8).float() * scale.reshape(-1, 1))
        codes = (weight / scale.reshape(-1, 1)).to(FLOAT8)
        return {f"{base}.weight": codes, f"{base}.scale_weight": scale, f"{base}.scale_input": torch.ones(1)}

    coded = open_path(save_with(model, tmp_path / "b", base, change))
    if rows and architecture == "GPT2LMHeadModel":
        square = "transformer.h.0.attn.c_proj"
        coded = open_path(save_with(model, tmp_path / "c", square, change))
        assert list(coded.unread.codes) == [f"{square}.weight"]
        return
    assert torch.equal(coded.state[f"{base}.weight"], kept[0])
    assert problems(coded) == {}
    model.load_state_dict({f"{base}.weight": kept[0]}, strict=False)
    ids = torch.tensor([coded.tokens.encode("w1 w2 w3").ids])
    found = lens(coded, progress=silent, text="w1 w2 w3", device="cpu", dtype="float32")
    with torch.inference_mode():
        truth = model(ids).logits[0].softmax(dim=1).max(dim=1).values
    last = found.cells.query("rung == 'logits' and layer == 2 and rank == 0")
    torch.testing.assert_close(torch.tensor(last["probability"].to_numpy(float)), truth.double(), rtol=1e-4, atol=0)


@pytest.mark.parametrize("beside", ["input_scale", "output_scale", "scale_input", "k_scale", "input_quantizer._amax"])
def test_scales_of_activations_belong_to_codes_that_are_read(stored, beside):
    """They change no weight, no class has a place for them, and nobody is told to save the model without them."""
    scales = {f"{WEIGHT}_scale": torch.ones(1), f"{LAYER}.{beside}": torch.ones(1)}
    coded = stored(lambda w: {WEIGHT: w.to(FLOAT8)} | scales)
    assert list(coded.quantized) == [WEIGHT]
    assert coded.unread == Unread({}, {f"{LAYER}.{beside}": WEIGHT})
    assert problems(coded) == {}
    said = sharing(coded, progress=silent).warnings
    assert not [each for each in said if beside in each]


def test_names_without_a_prefix_have_companions_too():
    state = {
        "weight": FLOAT8,
        "weight_scales": torch.float32,
        "other_packed": torch.int32,
        "other_scale": torch.float32,
    }
    stored = [header(name, torch.empty(8, 8 if place % 2 == 0 else 1), dtype)
              for place, (name, dtype) in enumerate(state.items())]  # fmt: skip
    unread = find_unread(Tensors.of(stored), {})
    assert unread.codes == {"weight": "weight", "other_packed": "other"}
    assert unread.beside == {"weight_scales": "weight", "other_scale": "other_packed"}


def test_many_codes_of_one_prefix_each_have_their_own_scales():
    stored = [header(f"a.w{number}_packed", torch.empty(4, 4), torch.int32) for number in range(100)]
    stored += [header(f"a.w{number}_group_scale", torch.empty(4, 1), torch.float32) for number in range(100)]
    unread = find_unread(Tensors.of(stored), {})
    assert unread.codes == {f"a.w{number}_packed": f"a.w{number}" for number in range(100)}
    assert unread.beside == {f"a.w{number}_group_scale": f"a.w{number}_packed" for number in range(100)}


def test_old_masks_and_tables_are_no_codes(tmp_path, open_path):
    folder = save_checkpoint(random_model("GPT2LMHeadModel"), tmp_path / "a")
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.h.0.attn.bias"] = torch.ones(1, 1, 64, 64, dtype=torch.uint8)
    tensors["transformer.h.0.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    opened = open_path(folder)
    assert opened.unread == Unread({}, {})
    assert problems(opened).keys() <= {"Number types"}
