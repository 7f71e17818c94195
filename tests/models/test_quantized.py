"""Weights that are stored as codes, against the libraries that write and read such files."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bitsandbytes.functional import dequantize_4bit, int8_vectorwise_dequant
from bitsandbytes.nn.modules import Linear4bit, Linear8bitLt
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.entrypoints.convert.converters import ModelOptNvfp4Converter
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.quant_scheme import PRESET_SCHEMES
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from safetensors.numpy import save_file as save_numpy
from safetensors.torch import load_file, save_file
from transformers import GptOssConfig, GptOssForCausalLM, LlamaForCausalLM
from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from inspector.analyses.compare.compute import compare
from inspector.analyses.embeddings.compute import embeddings
from inspector.analyses.heads.compute import heads
from inspector.analyses.lens.compute import lens
from inspector.analyses.overview.compute import overview
from inspector.analyses.sharing.compute import sharing
from inspector.errors import CheckpointError
from inspector.models.quantized.codes import open_codes
from inspector.models.tensors import StoredReader
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.models.quantized_files import (
    AUTO,
    BITS4,
    LAYER,
    WEIGHT,
    bert,
    by_bitsandbytes,
    problems,
    wide_model,
    words_of,
)
from tests.sentences import TIES_NOT_COMPARED


def ask(first, second) -> Any:
    return compare(first, progress=silent, other=second.manifest.fingerprint)


def row_of(result, name: str) -> dict[str, Any]:
    (found,) = result.tensors[result.tensors["name"] == name].to_dict("records")
    return found


@pytest.mark.parametrize("scheme", BITS4)
@pytest.mark.parametrize("model", AUTO)
def test_four_bits_of_bitsandbytes(tmp_path, open_path, model, scheme):
    """Each weight is what bitsandbytes makes of it, and the model answers as one of those."""
    whole = open_path(save_checkpoint(wide_model(model), tmp_path / "a"))
    made = by_bitsandbytes(tmp_path / "a", model, **BITS4[scheme])
    save_checkpoint(wide_model(model), tmp_path / "b")  # the tokenizer
    made.save_pretrained(tmp_path / "b")
    coded = open_path(tmp_path / "b")
    linear: dict[str, Any] = {name: module for name, module in made.named_modules() if isinstance(module, Linear4bit)}
    assert {f"{name}.weight" for name in linear} == set(coded.quantized)
    answering = wide_model(model)
    for name, module in linear.items():
        truth = dequantize_4bit(module.weight.data, module.weight.quant_state)
        truth = truth.T if "GPT2" in model else truth
        torch.testing.assert_close(coded.state[f"{name}.weight"], truth, rtol=1e-5, atol=1e-6)
        answering.get_parameter(f"{name}.weight").data.copy_(truth)
    text = "w1 w2 w3 w30"
    ids = torch.tensor([coded.tokens.encode(text).ids])
    answer = lens(coded, progress=silent, text=text, layers=[2], device="cpu", dtype="float32")
    with torch.inference_mode():
        logits = answering(ids).logits[0]
    best = answer.cells.query("rung == 'logits'")
    assert best["token_id"].tolist() == logits.topk(5, dim=1).indices.flatten().tolist()
    assert best["score"].tolist() == pytest.approx(logits.topk(5, dim=1).values.flatten(), abs=1e-4)
    result = ask(whole, coded)
    assert set(result.counts) <= {"quantised", "equal"}
    assert result.counts["quantised"] == len(linear)
    for name in linear:
        row = row_of(result, f"{name}.weight")
        a, b = (each.state[f"{name}.weight"].double() for each in (whole, coded))
        assert row["relative_change"] == pytest.approx((b - a).norm().item() / a.norm().item())
        assert row["nearest"] > 0.9  # bitsandbytes rounds; double: its scales are coded afterwards
        assert "bitsandbytes" in row["other_dtype"]
    assert any("Quantized: " in sentence for sentence in result.summary)
    back = ask(coded, whole)
    assert back.counts == result.counts


@pytest.mark.parametrize("model", AUTO)
def test_int8_of_bitsandbytes(tmp_path, open_path, model):
    whole = open_path(save_checkpoint(wide_model(model), tmp_path / "a"))
    made = by_bitsandbytes(tmp_path / "a", model, load_in_8bit=True)
    save_checkpoint(wide_model(model), tmp_path / "b")
    made.save_pretrained(tmp_path / "b")
    coded = open_path(tmp_path / "b")
    linear: dict[str, Any] = {name: module for name, module in made.named_modules() if isinstance(module, Linear8bitLt)}
    assert {f"{name}.weight" for name in linear} == set(coded.quantized)
    for name, module in linear.items():
        truth = int8_vectorwise_dequant(module.weight.data, module.weight.SCB)
        truth = truth.T if "GPT2" in model else truth
        torch.testing.assert_close(coded.state[f"{name}.weight"], truth, rtol=1e-5, atol=1e-6)
        row = row_of(ask(whole, coded), f"{name}.weight")
        assert row["nearest"] > 0.99  # it rounds the weights to float16 before
        assert "of the numbers are as close as their scales allow" in row["note"]
    assert not sharing(coded, progress=silent).warnings[1:]  # only what config.json declares


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("pack-quantized", {"num_bits": bits, "strategy": "group", "group_size": 16,
                            "symmetric": symmetric})
        for bits in (2, 3, 4, 5, 8)
        for symmetric in (True, False)
    ]
    + [
        ("pack-quantized", {"num_bits": 4, "strategy": "channel", "symmetric": False}),
        ("int-quantized", {"num_bits": 8, "strategy": "channel", "symmetric": True}),
        ("int-quantized", {"num_bits": 8, "strategy": "channel", "symmetric": False}),
        ("int-quantized", {"num_bits": 8, "strategy": "tensor", "symmetric": True}),
        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "tensor"}),
        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"}),
    ],
)  # fmt: skip
def test_compressed_tensors(stored, plain, form, options):
    """Compressed and decompressed by the library itself."""
    args = QuantizationArgs(**options)
    library = BaseCompressor.get_value_from_registry(form)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    truth: list[Any] = []

    def compress(weight):
        width = {"group": 16, "channel": weight.shape[1], "tensor": weight.numel()}[options["strategy"]]
        parts = weight.reshape(1, -1) if args.strategy == "tensor" else weight
        parts = parts.reshape(len(parts), -1, width)
        scale, zero = calculate_qparams(parts.amin(dim=2), parts.amax(dim=2), args)
        given = {"weight": weight, "weight_scale": scale, "weight_zero_point": zero}
        if args.strategy == "tensor":
            given |= {"weight_scale": scale.reshape(1), "weight_zero_point": zero.reshape(1)}
        made = library.compress(dict(given), scheme)
        truth.append(library.decompress(dict(made), scheme)["weight"])
        return {f"{LAYER}.{name}": tensor for name, tensor in made.items()}

    coded = stored(compress, quantization={"quant_method": "compressed-tensors", "format": form})
    assert list(coded.quantized) == [WEIGHT]
    torch.testing.assert_close(coded.state[WEIGHT], truth[0], rtol=1e-6, atol=1e-7)
    result = ask(plain, coded)
    row = row_of(result, WEIGHT)
    assert (row["status"], row["nearest"]) == ("quantised", 1)
    assert row["note"].endswith("each number is as close as its scale allows")
    assert row["max_abs"] == pytest.approx((truth[0] - plain.state[WEIGHT]).abs().max().item())
    assert result.counts == {"quantised": 1, "equal": len(plain.tensors) - 1}
    assert "plain rounding" in " ".join(result.summary)
    assert ask(coded, coded).counts == {"equal": len(plain.tensors)}


def floats_of_4_bits(form: str, weight: torch.Tensor) -> tuple[dict[str, torch.Tensor], Any]:
    """A weight as compressed-tensors stores it, and what it reads from that."""
    args: Any = PRESET_SCHEMES[form]["weights"]
    library = BaseCompressor.get_value_from_registry(f"{form.lower()}-pack-quantized")
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    groups = weight.reshape(len(weight), -1, args.group_size)
    low, high = groups.amin(dim=2), groups.amax(dim=2)
    whole = {} if form == "MXFP4" else {"weight_global_scale": generate_gparam(low.min(), high.max())}
    scale, _ = calculate_qparams(low, high, args, whole.get("weight_global_scale"))
    made: Any = library.compress({"weight": weight, "weight_scale": scale, **whole}, scheme)
    return made, library.decompress(dict(made), scheme)["weight"]


@pytest.mark.parametrize("form", ["MXFP4", "NVFP4"])
def test_floats_of_4_bits(stored, plain, form):
    """Written and read by compressed-tensors, which reads into bfloat16."""
    truth: list[Any] = []

    def compress(weight):
        made, read = floats_of_4_bits(form, weight)
        truth.append(read)
        return {f"{LAYER}.{name}": tensor for name, tensor in made.items()}

    said = {"quant_method": "compressed-tensors", "format": f"{form.lower()}-pack-quantized"}
    coded = stored(compress, quantization=said)
    assert list(coded.quantized) == [WEIGHT]
    assert coded.quantized[WEIGHT].scheme.startswith(f"{form} (compressed-tensors), groups of ")
    torch.testing.assert_close(coded.state[WEIGHT], truth[0].float(), rtol=2**-7, atol=0)
    row = row_of(ask(plain, coded), WEIGHT)
    assert row["status"] == "quantised"
    assert row["nearest"] > 0.97  # it rounds in bfloat16
    assert problems(coded) == {}
    assert ask(coded, coded).counts == {"equal": len(plain.tensors)}


def test_floats_of_4_bits_by_modelopt(stored, plain):
    """The same numbers as what compressed-tensors makes of such a file."""
    kept: list[Any] = []

    def compress(weight):
        made, _ = floats_of_4_bits("NVFP4", weight)
        theirs = {
            "weight": made["weight_packed"],
            "weight_scale": made["weight_scale"],
            "weight_scale_2": 1 / made["weight_global_scale"],
        }
        named = {f"{LAYER}.{name}": tensor for name, tensor in theirs.items()}
        converted = ModelOptNvfp4Converter(targets=["Linear"]).process(
            {name: tensor.clone() for name, tensor in named.items()}
        )
        kept.append({name.removeprefix(f"{LAYER}."): t for name, t in converted.items()})
        return named

    coded = stored(compress, quantization={"quant_method": "modelopt", "quant_algo": "NVFP4"})
    library = BaseCompressor.get_value_from_registry("nvfp4-pack-quantized")
    scheme = QuantizationScheme(targets=["Linear"], weights=PRESET_SCHEMES["NVFP4"]["weights"])
    truth: Any = library.decompress(kept[0], scheme)["weight"]
    assert coded.quantized[WEIGHT].scheme == "NVFP4 (ModelOpt), groups of 16"
    torch.testing.assert_close(coded.state[WEIGHT], truth.float(), rtol=2**-7, atol=0)
    assert row_of(ask(plain, coded), WEIGHT)["nearest"] > 0.97


def test_experts_of_gpt_oss(tmp_path, open_path):
    """Each expert's weights, and the model's answers, are what transformers makes of the blocks."""
    config = GptOssConfig(
        vocab_size=60, hidden_size=64, intermediate_size=32, num_hidden_layers=2, head_dim=32,
        num_attention_heads=2, num_key_value_heads=1, num_local_experts=3, num_experts_per_tok=2,
        max_position_embeddings=64, pad_token_id=0, eos_token_id=1, sliding_window=16,
    )  # fmt: skip
    torch.manual_seed(0)
    model = GptOssForCausalLM(config).eval()
    whole = open_path(save_checkpoint(model, tmp_path / "a"))
    folder = save_checkpoint(model, tmp_path / "b")
    tensors = load_file(folder / "model.safetensors")
    truth = {}
    for name in [each for each in tensors if each.endswith(("gate_up_proj", "down_proj"))]:
        experts, inputs, outputs = tensors.pop(name).shape
        blocks = torch.randint(0, 256, (experts, outputs, inputs // 32, 16), dtype=torch.uint8)
        scales = torch.randint(118, 124, (experts, outputs, inputs // 32), dtype=torch.uint8)
        truth[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
        tensors |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
        model.get_parameter(name).data.copy_(truth[name])
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    said = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    said["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": []}
    (folder / "config.json").write_text(json.dumps(said), encoding="utf-8")

    coded = open_path(folder)
    assert set(coded.quantized) == set(truth)
    assert len(truth) == 4
    for name, numbers in truth.items():
        assert torch.equal(coded.state[name].float(), numbers)
        assert coded.quantized[name].scheme == "MXFP4 (gpt-oss), groups of 32"
        row = row_of(ask(whole, coded), name)
        before = load_file(tmp_path / "a" / "model.safetensors")[name].double()
        apart = (numbers.double() - before).norm() / before.norm()
        assert row["relative_change"] == pytest.approx(apart.item())
    text = "w1 w2 w3"
    ids = torch.tensor([coded.tokens.encode(text).ids])
    answer = lens(coded, progress=silent, text=text, layers=[2], device="cpu", dtype="float32")
    with torch.inference_mode():
        logits = model(ids).logits[0]
    best = answer.cells.query("rung == 'logits'")
    assert best["token_id"].tolist() == logits.topk(5, dim=1).indices.flatten().tolist()
    assert best["score"].tolist() == pytest.approx(logits.topk(5, dim=1).values.flatten(), abs=1e-4)
    assert problems(coded) == problems(whole)


@pytest.mark.parametrize("block", [[16, 16], [8, 20], [128, 128]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e8m0fnu])
def test_float8_in_blocks(stored, plain, block, dtype):
    """As DeepSeek-V3 stores it and transformers reads it."""
    kept: list[torch.Tensor] = []

    def quantize(weight):
        down, across = (math.ceil(n / b) for n, b in zip(weight.shape, block, strict=True))
        scale = (0.001 * torch.rand(down, across) + 0.001).to(dtype)
        spread = scale.float().repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
        codes = (weight / spread[: weight.shape[0], : weight.shape[1]]).to(torch.float8_e4m3fn)
        kept.extend([codes, scale])
        return {WEIGHT: codes, f"{WEIGHT}_scale_inv": scale}

    quantization = {"quant_method": "fp8", "weight_block_size": block}
    coded = stored(quantize, quantization=None if block == [128, 128] else quantization)
    truth = _dequantize_fp8_weight(kept[0], kept[1], block, torch.float32)
    torch.testing.assert_close(coded.state[WEIGHT], truth, rtol=0, atol=0)
    row = row_of(ask(plain, coded), WEIGHT)
    assert row["nearest"] == 1


@pytest.mark.parametrize("form", ["gptq", "gptq_v2", None])
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("ordered", [True, False])
def test_gptq(stored, plain, bits, ordered, form):
    """w = scale · (code - zero), packed along the inputs; the first format stores zeros less 1."""
    torch.manual_seed(bits)
    outputs, inputs, groups = 64, 32, 2
    codes = torch.randint(0, 2**bits, (inputs, outputs))
    zeros = torch.randint(1, 2**bits, (groups, outputs))
    scales = torch.rand(groups, outputs).half()
    group = torch.randperm(inputs) // 16 if ordered else torch.arange(inputs) // 16
    less = 0 if form == "gptq_v2" else 1
    scale, zero, rows = scales.tolist(), zeros.tolist(), zip(codes.tolist(), group.tolist(), strict=True)
    truth = torch.tensor([[scale[of][o] * (row[o] - zero[of][o]) for o in range(outputs)] for row, of in rows]).T

    def pack(_):
        packed = [words_of(column, bits) for column in codes.T.tolist()]
        made = {
            f"{LAYER}.qweight": torch.tensor(packed, dtype=torch.int32).T,
            f"{LAYER}.qzeros": torch.tensor(
                [words_of([z - less for z in row], bits) for row in zeros.tolist()], dtype=torch.int32
            ),
            f"{LAYER}.scales": scales,
        }
        return made | ({f"{LAYER}.g_idx": group.to(torch.int32)} if ordered else {})

    said = {"quant_method": "gptq", "bits": bits} | ({"checkpoint_format": form} if form else {})
    coded = stored(pack, quantization=said)
    torch.testing.assert_close(coded.state[WEIGHT], truth, rtol=1e-6, atol=1e-7)
    row = row_of(ask(plain, coded), WEIGHT)
    assert row["status"] == "quantised"
    assert row["nearest"] < 0.9  # other numbers altogether
    assert "the weights differ" in " ".join(ask(plain, coded).summary)


def gptq_of(path: Path, which: np.ndarray, said: dict[str, Any], *, ordered: bool) -> np.ndarray:
    """Store 32 rows in 4 bits by GPTQ, and give the numbers that they stand for.

    Args:
        which: The group of each input; stored as g_idx where they are `ordered`.
    """
    inputs, groups = len(which), max(which) + 1
    draw = np.random.default_rng(inputs)
    codes, zeros = draw.integers(0, 16, (32, inputs)), draw.integers(1, 16, (groups, 32))
    scales = draw.random((groups, 32)).astype(np.float16)
    tensors = {
        "lm_head.qweight": np.array([words_of(row, 4) for row in codes.tolist()], np.int32).T.copy(),
        "lm_head.qzeros": np.array([words_of(row, 4) for row in (zeros - 1).tolist()], np.int32),
        "lm_head.scales": scales,
    }
    save_numpy(tensors | ({"lm_head.g_idx": which} if ordered else {}), path / "model.safetensors")
    config = {"model_type": "llama", "dtype": "float32", "quantization_config": {"quant_method": "gptq"} | said}
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    rows = [
        [np.float32(scales[group, row]) * (codes[row, place] - zeros[group, row]) for place, group in enumerate(which)]
        for row in range(32)
    ]
    return np.array(rows, np.float32)


def in_groups(inputs: int, size: int) -> np.ndarray:
    """As AutoGPTQ writes g_idx: the last group has what is left."""
    return np.array([place // size for place in range(inputs)], np.int32)


@pytest.mark.parametrize(("inputs", "group"), [(320, 128), (96, 64), (64, 128), (160, 32), (352, 128)])
@pytest.mark.parametrize("order", ["none", "sorted", "shuffled"])
def test_gptq_whose_last_group_has_fewer_inputs(tmp_path, open_path, inputs, group, order):
    which = in_groups(inputs, group)
    if order == "shuffled":
        which = np.random.default_rng(0).permutation(which)
    truth = gptq_of(tmp_path, which, {"bits": 4, "group_size": group}, ordered=order != "none")
    opened = open_path(tmp_path)
    assert (opened.read(["lm_head.weight"])["lm_head.weight"].numpy() == truth).all()
    shared = "one scale a row" if inputs <= group else f"groups of {group}"
    assert opened.quantized["lm_head.weight"].scheme == f"4-bit codes (GPTQ), {shared}"


@pytest.mark.parametrize(
    ("inputs", "size", "said"),
    [(96, 64, {}), (96, 64, {"group_size": 128}), (320, 128, {}), (320, 128, {"group_size": 64})],
)
def test_gptq_of_groups_that_nobody_states_is_not_read(tmp_path, open_path, inputs, size, said):
    """Two groups of 96 inputs may be of 48 or of 64."""
    gptq_of(tmp_path, in_groups(inputs, size), said, ordered=False)
    assert list(open_path(tmp_path).unread.codes) == ["lm_head.qweight"]


@pytest.mark.parametrize("ordered", [True, False])
def test_a_module_of_another_group_than_is_stated_for_all(tmp_path, open_path, ordered):
    """GPTQModel's dynamic: 4 groups of 128 inputs are of 32."""
    truth = gptq_of(tmp_path, in_groups(128, 32), {"group_size": 128}, ordered=ordered)
    assert (open_path(tmp_path).read(["lm_head.weight"])["lm_head.weight"].numpy() == truth).all()


def test_awq_whose_inputs_do_not_divide_into_the_stated_groups_is_not_read(stored):
    """AutoAWQ stores no such weight: two groups of 32 inputs are none of 24."""
    whole = {f"{LAYER}.qweight": torch.zeros(32, 8, dtype=torch.int32), f"{LAYER}.scales": torch.ones(2, 64).half()}
    coded = stored(lambda _: whole | {f"{LAYER}.qzeros": torch.zeros(2, 8, dtype=torch.int32)},
                   quantization={"quant_method": "awq", "bits": 4, "group_size": 24})  # fmt: skip
    assert WEIGHT not in coded.quantized


def test_awq(stored):
    """Codes stand along the outputs, those of a word in the order 0, 2, 4, 6, 1, 3, 5, 7."""
    torch.manual_seed(0)
    outputs, inputs, groups = 64, 32, 2
    codes = torch.randint(0, 16, (inputs, outputs))
    zeros = torch.randint(0, 16, (groups, outputs))
    scales = torch.rand(groups, outputs).half()
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def words(row: list[int]) -> list[int]:
        return words_of([row[begin + place] for begin in range(0, outputs, 8) for place in order], 4)

    def pack(_):
        return {
            f"{LAYER}.qweight": torch.tensor([words(r) for r in codes.tolist()], dtype=torch.int32),
            f"{LAYER}.qzeros": torch.tensor([words(r) for r in zeros.tolist()], dtype=torch.int32),
            f"{LAYER}.scales": scales,
        }

    coded = stored(pack, quantization={"quant_method": "awq", "bits": 4})
    group = torch.arange(inputs) // 16
    truth = ((codes - zeros[group]) * scales.float()[group]).T
    torch.testing.assert_close(coded.state[WEIGHT], truth, rtol=1e-6, atol=1e-7)
    opened = open_codes(StoredReader(coded.manifest), coded.quantized[WEIGHT])
    pieces = [opened.rows(slice(0, 3)), opened.rows(slice(3, 21)), opened.rows(slice(21, 99))]
    torch.testing.assert_close(torch.cat(pieces), truth, rtol=1e-6, atol=1e-7)


def test_nearest_is_by_brute_force(stored, plain):
    """Codes that are all one too high are no nearest ones; half of them moved, half are."""

    def quantize(weight, moved=0):
        scale = weight.abs().amax(dim=1, keepdim=True) / 100
        codes = (weight / scale).round()
        codes[:moved] += 1
        return {WEIGHT: codes.to(torch.int8), f"{WEIGHT}_scale": scale}

    rows = plain.state[WEIGHT].shape[0]
    for moved, share in ((0, 1.0), (rows // 2, 0.5), (rows, 0.0)):
        coded = stored(lambda weight, m=moved: quantize(weight, m), f"moved{moved}")
        row = row_of(ask(plain, coded), WEIGHT)
        assert row["nearest"] == pytest.approx(share, abs=0.002)  # some lie in the middle


def test_the_tensor_that_is_no_rounding_is_named(tmp_path, open_path):
    """Most of a copy is the plain rounding, one tensor is not; and two copies are told apart."""
    other = "bert.encoder.layer.1.intermediate.dense.weight"

    def quantize(tensors, moved):
        for name in (WEIGHT, other):
            scale = tensors[name].abs().amax(dim=1, keepdim=True) / 100
            codes = (tensors[name] / scale).round() + (3 if name == moved else 0)
            tensors |= {name: codes.to(torch.int8), f"{name}_scale": scale}
        del tensors["bert.embeddings.LayerNorm.bias"]
        return tensors

    opened = {}
    for name, change in (("a", None), ("b", ""), ("c", other)):
        folder = save_checkpoint(bert(), tmp_path / name)
        tensors = load_file(folder / "model.safetensors")
        if change is not None:
            save_file(quantize(tensors, change), folder / "model.safetensors", metadata={"format": "pt"})
        opened[name] = open_path(folder)
    said = " ".join(ask(opened["a"], opened["b"]).summary)
    assert "Only in a: bert.embeddings.LayerNorm.bias." in said
    assert "b has 2 tensors as int8, one scale a row. " in said
    assert "in each of the 2 are as close to the other checkpoint's as the scales allow: plain" in said
    said = " ".join(ask(opened["a"], opened["c"]).summary)
    assert f"1 of them are plain rounding of the other checkpoint's numbers; where only 0 % of {other}" in said
    said = " ".join(ask(opened["b"], opened["c"]).summary)
    assert "Both are quantized: b 2 tensors as int8, one scale a row, c 2 tensors as int8" in said


def test_a_plain_cast_to_float8_is_measured_and_runs(tmp_path, open_path):
    folder = save_checkpoint(bert(), tmp_path / "b")
    whole = open_path(save_checkpoint(bert(), tmp_path / "a"))
    tensors = load_file(folder / "model.safetensors")
    cast = {name: tensor.to(torch.float8_e4m3fn) for name, tensor in tensors.items()}
    save_file(cast, folder / "model.safetensors", metadata={"format": "pt"})
    coded = open_path(folder)
    result = ask(whole, coded)
    assert set(result.counts) <= {"dtype changed", "equal"}
    row = row_of(result, WEIGHT)
    truth = cast[WEIGHT].double() - tensors[WEIGHT].double()
    assert row["relative_change"] == pytest.approx(truth.norm().item() / tensors[WEIGHT].double().norm().item())
    assert row["note"] == "exactly what rounding to float8_e4m3fn gives"
    assert result.vocabulary.moved
    found = embeddings(coded, progress=silent)
    assert np.isfinite(found.special["norm"].to_numpy(float)).all()
    model = bert()
    model.load_state_dict({n: t.float() for n, t in cast.items()}, strict=False)
    ids = torch.tensor([coded.tokens.encode("w1 w2 w3").ids])
    answer = lens(coded, progress=silent, text="w1 w2 w3", device="cpu", dtype="float32")
    with torch.inference_mode():
        logits = model(ids).logits[0]
    last = answer.cells.query("rung == 'logits' and layer == 2 and rank == 0")
    assert last["token_id"].tolist() == logits.argmax(dim=1).tolist()


def test_more_numbers_than_memory_may_hold_are_not_made(stored, plain):
    """A model is refused in a sentence; what needs a part of it goes on."""
    coded = stored(lambda w: {WEIGHT: w.to(torch.float8_e4m3fn), f"{WEIGHT}_scale": torch.ones(1)})
    coded.settings = replace(coded.settings, model_nbytes=1_000)
    with pytest.raises(CheckpointError, match=r"take 0\.0 GB once dequantized.*INSPECTOR_MODEL_MB"):
        lens(coded, progress=silent, text="w1 w2", device="cpu")
    assert embeddings(coded, progress=silent).rows == 60
    result = compare(plain, progress=silent, other=coded.manifest.fingerprint)
    assert row_of(result, WEIGHT)["status"] == "quantised"


@pytest.mark.parametrize(
    "change",
    [
        lambda w: {WEIGHT: w.mul(10).to(torch.int8)},  # no scale
        lambda w: {WEIGHT: w.to(torch.float8_e4m3fn), f"{WEIGHT}_scale": torch.ones(7)},
        lambda w: {WEIGHT: w.to(torch.float8_e4m3fn), f"{WEIGHT}_scale_2": torch.ones(1)},
        lambda w: {f"{LAYER}.qweight": torch.zeros(4, 64, dtype=torch.int32)},
        lambda w: {f"{LAYER}.weight_packed": torch.zeros(64, 4, dtype=torch.uint8),
                   f"{LAYER}.weight_scale": torch.ones(64, 2)},
        lambda w: {WEIGHT: torch.zeros(1024, 1, dtype=torch.uint8),
                   f"{WEIGHT}.absmax": torch.ones(32), f"{WEIGHT}.quant_map": torch.ones(16),
                   f"{WEIGHT}.quant_state.bitsandbytes__nf4": torch.zeros(9, dtype=torch.uint8)},
        lambda w: {WEIGHT: torch.zeros(64, 4, dtype=torch.uint32),  # NVFP4 of MLX
                   f"{LAYER}.scales": torch.zeros(64, 2, dtype=torch.uint8)},
        lambda w: {WEIGHT: torch.zeros(64, 8, dtype=torch.uint32),  # MXFP8 of MLX
                   f"{LAYER}.scales": torch.zeros(64, 1, dtype=torch.uint8)},
    ],
)  # fmt: skip
def test_codes_that_cannot_be_read_are_no_numbers(stored, plain, change):
    """The headers are listed; nothing is computed, and the sentence names the tensor."""
    coded = stored(change)
    assert overview(coded, progress=silent).tensors["name"].tolist()
    with pytest.raises(CheckpointError, match="in a quantized format that this tool does not support"):
        lens(coded, progress=silent, text="w1 w2")
    result = ask(plain, coded)
    row = row_of(result, WEIGHT)
    assert row["status"] == "not compared"
    assert math.isnan(row["relative_change"])
    assert any(each.startswith(TIES_NOT_COMPARED) for each in result.warnings)
    assert result.vocabulary.matched == 60  # the embeddings are plain


def test_floats_of_4_bits_by_mlx(stored, plain):
    """Words of eight floats, the first in the lowest bits, and a power of two for each 32: by hand."""
    floats = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    floats += [-each for each in floats]
    torch.manual_seed(0)
    codes, powers = torch.randint(0, 16, (64, 32)), torch.randint(120, 130, (64, 1))
    truth = [
        [floats[code] * 2.0 ** (power - 127) for code in row]
        for row, (power,) in zip(codes.tolist(), powers.tolist(), strict=True)
    ]

    def compress(_: torch.Tensor) -> dict[str, torch.Tensor]:
        words = torch.tensor([words_of(row, 4) for row in codes.tolist()], dtype=torch.int32)
        return {WEIGHT: words.view(torch.uint32), f"{LAYER}.scales": powers.to(torch.uint8)}

    coded = stored(compress, quantization={"group_size": 32, "bits": 4, "mode": "mxfp4"})
    assert coded.quantized[WEIGHT].scheme == "MXFP4 (MLX), groups of 32"
    assert coded.state[WEIGHT].tolist() == truth
    assert problems(coded) == {}
    assert row_of(ask(plain, coded), WEIGHT)["status"] == "quantised"


@pytest.mark.parametrize("bits", [2, 3, 4, 6, 8])
@pytest.mark.parametrize("group", [32, 64, 128])
def test_mlx_numbers_are_code_times_scale_plus_bias_to_the_last_bit(tmp_path, open_path, bits, group):
    """Any words; scales in half precision, as mlx-lm leaves them; the codes by numpy, bit after bit."""
    draw = np.random.default_rng(100 * bits + group)
    words = draw.integers(0, 1 << 32, (6, 256 * bits // 32), dtype=np.uint32)
    scales, biases = (draw.normal(size=(6, 256 // group)).astype(np.float16) for _ in range(2))
    stored = {"weight": words, "scales": scales, "biases": biases}
    save_numpy({f"model.norm.{part}": each for part, each in stored.items()}, tmp_path / "model.safetensors")
    config = {"model_type": "llama", "dtype": "float32", "quantization": {"group_size": group, "bits": bits}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    ones = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").reshape(6, 256, bits).astype(np.float32)
    codes = ones @ (2 ** np.arange(bits)).astype(np.float32)
    truth = codes * np.repeat(scales.astype(np.float32), group, 1) + np.repeat(biases.astype(np.float32), group, 1)
    read = open_path(tmp_path).read(["model.norm.weight"])["model.norm.weight"].numpy()
    assert read.dtype == np.float32
    assert (read == truth).all()


def test_mlx_gives_what_its_documentation_says(tmp_path, open_path):
    """Four bits: the code of 0x76543210 in place k is k, the lowest bits first."""
    words = np.array([[0x76543210, 0xFEDCBA98] * 2], dtype=np.uint32)
    stored = {"weight": words, "scales": np.array([[0.5]], "f4"), "biases": np.array([[-1.0]], "f4")}
    save_numpy({f"lm_head.{part}": each for part, each in stored.items()}, tmp_path / "model.safetensors")
    config = {"model_type": "llama", "dtype": "float32", "quantization": {"group_size": 32, "bits": 4}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    row = open_path(tmp_path).read(["lm_head.weight"])["lm_head.weight"][0].tolist()
    assert row == [code / 2 - 1 for code in [*range(16), *range(16)]]


@pytest.mark.parametrize(("bits", "group"), [(2, 32), (3, 32), (4, 64), (5, 32), (6, 32), (8, 64)])
def test_mlx(tmp_path, open_path, bits, group):
    """Scales and biases of each group, codes one after the other, lowest bit first; some modules have more bits."""
    sizes = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 32}
    whole = save_checkpoint(random_model("LlamaForCausalLM", **sizes), tmp_path / "whole")
    model = LlamaForCausalLM.from_pretrained(whole).eval()
    count = model.num_parameters()
    packed: dict[str, torch.Tensor] = {}
    said: dict[str, Any] = {"group_size": group, "bits": bits, "lm_head": False}
    torch.manual_seed(bits)
    for name, weight in load_file(whole / "model.safetensors").items():
        if weight.dim() < 2 or name.startswith("lm_head"):
            packed[name] = weight
            continue
        base = name.removesuffix(".weight")
        width, size = (8, 32) if base.endswith("down_proj") else (bits, group)
        if (width, size) != (bits, group):
            said[base] = {"group_size": size, "bits": width}
        codes = torch.randint(0, 2**width, weight.shape)
        scales, biases = (torch.randn(len(weight), weight.shape[1] // size) * 0.1 for _ in range(2))
        words = torch.tensor([words_of(row, width) for row in codes.tolist()], dtype=torch.int32)
        packed |= {name: words.view(torch.uint32), f"{base}.scales": scales, f"{base}.biases": biases}
        by_hand = [
            [row[place] * scale[place // size] + bias[place // size] for place in range(len(row))]
            for row, scale, bias in zip(codes.tolist(), scales.tolist(), biases.tolist(), strict=True)
        ]
        with torch.no_grad():
            model.get_parameter(name).copy_(torch.tensor(by_hand))
    folder = tmp_path / "mlx"
    shutil.copytree(whole, folder)
    save_file(packed, folder / "model.safetensors", metadata={"format": "mlx"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    said_twice = {"quantization": said, "quantization_config": said}  # as mlx-lm writes it
    (folder / "config.json").write_text(json.dumps(config | said_twice), encoding="utf-8")
    checkpoint = open_path(folder)
    for found in (overview(checkpoint, progress=silent), sharing(checkpoint, progress=silent)):
        assert found.unique_parameters == count
    down = next(each for name, each in checkpoint.quantized.items() if name.endswith("down_proj.weight"))
    assert down.scheme == "8-bit codes (MLX), groups of 32"
    assert checkpoint.quantized["model.embed_tokens.weight"].scheme.startswith(f"{bits}-bit codes (MLX)")
    assert any("quantized weights (quantization_config)" in each for each in checkpoint.manifest.warnings)
    for name, tensor in checkpoint.state.items():
        assert torch.allclose(tensor, model.get_parameter(name), atol=1e-6)
    answer: Any = heads(checkpoint, progress=silent, text="w1 w2", k=60, new_tokens=1, device="cpu", dtype="float32")
    with torch.inference_mode():
        logits = model(torch.tensor([checkpoint.tokens.encode("w1 w2").ids])).logits[0, -1]
    listed = answer.result.next.sort_values("token_id")
    assert listed["logit"].tolist() == pytest.approx(logits.tolist(), abs=1e-4)
