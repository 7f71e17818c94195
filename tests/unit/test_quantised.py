"""Weights that are stored as codes, against the libraries that write and read such files."""

from __future__ import annotations

import json
import math
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
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    BitsAndBytesConfig,
    GptOssConfig,
    GptOssForCausalLM,
)
from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from inspector.analyses.checks import check
from inspector.analyses.compare import compare
from inspector.analyses.embeddings import embeddings
from inspector.analyses.lens import lens
from inspector.analyses.overview import overview
from inspector.analyses.sharing import sharing
from inspector.analyses.training import training
from inspector.analyses.what_if import what_if
from inspector.errors import CheckpointError
from inspector.models.codes import OPENERS, open_codes, read_quantised, unpack
from inspector.models.quantised import Quantised, find_quantised
from inspector.store.headers import read_safetensors
from inspector.store.manifest import FileInfo, Manifest

from .conftest import silent
from .families import random_model, save_checkpoint

LAYER = "bert.encoder.layer.0.intermediate.dense"
WEIGHT = f"{LAYER}.weight"
BITS4 = {
    "nf4": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
    "fp4": {"load_in_4bit": True, "bnb_4bit_quant_type": "fp4"},
    "double": {
        "load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True,
    },
}  # fmt: skip
AUTO = {
    "LlamaForCausalLM": AutoModelForCausalLM,
    "GPT2LMHeadModel": AutoModelForCausalLM,  # whose Conv1D keeps (in, out)
    "BertForMaskedLM": AutoModelForMaskedLM,
}
# bitsandbytes' own kernel for CPUs goes wrong where a block of 64 numbers crosses rows.
WIDE = {
    "LlamaForCausalLM": {"hidden_size": 64, "intermediate_size": 128, "head_dim": 32},
    "GPT2LMHeadModel": {"n_embd": 64},
    "BertForMaskedLM": {"hidden_size": 64, "intermediate_size": 128},
}


def ask(first, second) -> Any:
    return compare(first, progress=silent, other=second.manifest.fingerprint)


def row_of(result, name: str) -> dict[str, Any]:
    (found,) = result.tensors[result.tensors["name"] == name].to_dict("records")
    return found


def bert():
    return random_model("BertForMaskedLM", intermediate_size=64)


def wide_model(architecture: str):
    return random_model(architecture, **WIDE[architecture])


def by_bitsandbytes(folder: Path, architecture: str, **options: Any) -> Any:
    """A model that transformers and bitsandbytes quantise, saved beside its tokenizer."""
    config = BitsAndBytesConfig(bnb_4bit_compute_dtype=torch.float32, **options)
    return AUTO[architecture].from_pretrained(
        folder, quantization_config=config, device_map="cpu", dtype=torch.float32
    )


@pytest.fixture
def stored(tmp_path, open_path):
    """Save BERT's tensors with other ones in the place of one weight, and open the folder."""

    def opened(change, name="b", quantization=None):
        folder = save_checkpoint(bert(), tmp_path / name)
        tensors = load_file(folder / "model.safetensors")
        weight = tensors.pop(WEIGHT)
        tensors |= {key: value.contiguous() for key, value in change(weight).items()}
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        if quantization is not None:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            config["quantization_config"] = quantization
            (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return open_path(folder)

    return opened


@pytest.fixture
def plain(tmp_path, open_path):
    return open_path(save_checkpoint(bert(), tmp_path / "a"))


@pytest.mark.parametrize("scheme", BITS4)
@pytest.mark.parametrize("model", AUTO)
def test_four_bits_of_bitsandbytes(tmp_path, open_path, model, scheme):
    """Each weight is what bitsandbytes makes of it, and the model answers as one of those."""
    whole = open_path(save_checkpoint(wide_model(model), tmp_path / "a"))
    made = by_bitsandbytes(tmp_path / "a", model, **BITS4[scheme])
    save_checkpoint(wide_model(model), tmp_path / "b")  # the tokenizer
    made.save_pretrained(tmp_path / "b")
    coded = open_path(tmp_path / "b")
    linear: dict[str, Any] = {
        name: module for name, module in made.named_modules() if isinstance(module, Linear4bit)
    }
    assert {f"{name}.weight" for name in linear} == set(coded.quantised)
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
    assert any("Stored as codes" in sentence for sentence in result.summary)
    back = ask(coded, whole)
    assert back.counts == result.counts


@pytest.mark.parametrize("model", AUTO)
def test_int8_of_bitsandbytes(tmp_path, open_path, model):
    whole = open_path(save_checkpoint(wide_model(model), tmp_path / "a"))
    made = by_bitsandbytes(tmp_path / "a", model, load_in_8bit=True)
    save_checkpoint(wide_model(model), tmp_path / "b")
    made.save_pretrained(tmp_path / "b")
    coded = open_path(tmp_path / "b")
    linear: dict[str, Any] = {
        name: module for name, module in made.named_modules() if isinstance(module, Linear8bitLt)
    }
    assert {f"{name}.weight" for name in linear} == set(coded.quantised)
    for name, module in linear.items():
        truth = int8_vectorwise_dequant(module.weight.data, module.weight.SCB)
        truth = truth.T if "GPT2" in model else truth
        torch.testing.assert_close(coded.state[f"{name}.weight"], truth, rtol=1e-5, atol=1e-6)
        row = row_of(ask(whole, coded), f"{name}.weight")
        assert row["nearest"] > 0.99  # it rounds the weights to float16 before
        assert "of the numbers are the nearest that their codes can say" in row["note"]
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
        width = {"group": 16, "channel": weight.shape[1], "tensor": weight.numel()}[
            options["strategy"]
        ]
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
    assert list(coded.quantised) == [WEIGHT]
    torch.testing.assert_close(coded.state[WEIGHT], truth[0], rtol=1e-6, atol=1e-7)
    result = ask(plain, coded)
    row = row_of(result, WEIGHT)
    assert (row["status"], row["nearest"]) == ("quantised", 1)
    assert row["note"].endswith("each number is the nearest that its code can say")
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
    whole = (
        {} if form == "MXFP4" else {"weight_global_scale": generate_gparam(low.min(), high.max())}
    )
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
    assert list(coded.quantised) == [WEIGHT]
    assert coded.quantised[WEIGHT].scheme.startswith(f"{form} (compressed-tensors), groups of ")
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
    assert coded.quantised[WEIGHT].scheme == "NVFP4 (ModelOpt), groups of 16"
    torch.testing.assert_close(coded.state[WEIGHT], truth.float(), rtol=2**-7, atol=0)
    assert row_of(ask(plain, coded), WEIGHT)["nearest"] > 0.97


def test_every_float_of_4_bits():
    """All 16 codes in either half of a byte, by hand, with a scale of each kind."""
    codes = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    magnitudes = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    table = [*magnitudes, *(-each for each in magnitudes)]
    truth = torch.tensor([[table[half] for byte in row for half in (byte % 16, byte // 16)]
                          for row in codes.tolist()])  # fmt: skip
    powers = torch.arange(120, 136, dtype=torch.uint8)[:, None]
    for parts, how, size in (
        ({"scale": powers}, "", [2.0 ** (each - 127) for each in range(120, 136)]),
        ({"scale": powers.view(torch.float8_e8m0fnu)}, "",
         [2.0 ** (each - 127) for each in range(120, 136)]),
        ({"scale": torch.full((16, 2), 1.5).to(torch.float8_e4m3fn), "whole": torch.tensor([4.0])},
         "divide", [1.5 / 4] * 16),
        ({"scale": torch.full((16, 2), 1.5).to(torch.float8_e4m3fn), "whole": torch.tensor(4.0)},
         "multiply", [1.5 * 4] * 16),
    ):  # fmt: skip
        group = 32 // parts["scale"].shape[1]
        held = Quantised("w", (16, 32), "float32", "float4", "", {}, {"group": group, "how": how})
        opened = OPENERS["float4"]({"codes": codes, **parts}, held)
        assert torch.equal(opened.rows(slice(0, 16)), truth * torch.tensor(size)[:, None])
        assert torch.equal(opened.rows(slice(3, 5)), opened.rows(slice(0, 16))[3:5])
        best = opened.nearest(slice(0, 16), opened.rows(slice(0, 16)) * 1.01)
        assert torch.equal(best, opened.rows(slice(0, 16)))


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
    assert set(coded.quantised) == set(truth)
    assert len(truth) == 4
    for name, numbers in truth.items():
        assert torch.equal(coded.state[name].float(), numbers)
        assert coded.quantised[name].scheme == "MXFP4 (gpt-oss), groups of 32"
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

    def quantise(weight):
        down, across = (math.ceil(n / b) for n, b in zip(weight.shape, block, strict=True))
        scale = (0.001 * torch.rand(down, across) + 0.001).to(dtype)
        spread = scale.float().repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
        codes = (weight / spread[: weight.shape[0], : weight.shape[1]]).to(torch.float8_e4m3fn)
        kept.extend([codes, scale])
        return {WEIGHT: codes, f"{WEIGHT}_scale_inv": scale}

    quantization = {"quant_method": "fp8", "weight_block_size": block}
    coded = stored(quantise, quantization=None if block == [128, 128] else quantization)
    truth = _dequantize_fp8_weight(kept[0], kept[1], block, torch.float32)
    torch.testing.assert_close(coded.state[WEIGHT], truth, rtol=0, atol=0)
    row = row_of(ask(plain, coded), WEIGHT)
    assert row["nearest"] == 1


def test_experts_in_float8():
    """Three axes: the experts in front, each with blocks of its own."""
    from inspector.models.code_formats import Codes, scaled
    from inspector.store.manifest import Manifest, TensorInfo

    codes = torch.randn(3, 20, 32).to(torch.float8_e4m3fn)
    scale = torch.rand(3, 3, 2)
    infos = {
        name: TensorInfo(name, dtype, tuple(t.shape), (), "", 0, 0, "", 0)
        for name, t, dtype in (
            ("w", codes, "float8_e4m3fn"), ("w_scale_inv", scale, "float32"),
        )
    }  # fmt: skip
    manifest = Manifest("", "", "", Path(), (), (), {}, None, (), {"weight_block_size": [8, 16]})
    found: Codes = scaled("w", infos, manifest)
    held = Quantised("w", found.shape, "float32", found.kind, "", {}, found.options)
    opened = OPENERS["scaled"]({"codes": codes, "scale": scale}, held)
    truth = _dequantize_fp8_weight(codes, scale, [8, 16], torch.float32)
    parts = [opened.rows(slice(0, 7)), opened.rows(slice(7, 60))]
    torch.testing.assert_close(torch.cat(parts).view(3, 20, 32), truth, rtol=0, atol=0)


def bits_of(number: int, count: int) -> list[int]:
    return [number >> place & 1 for place in range(count)]


def words_of(codes: list[int], bits: int) -> list[int]:
    """Codes one after the other, lowest bit first, in 32-bit words: written bit by bit."""
    stream = [bit for code in codes for bit in bits_of(code, bits)]
    stream += [0] * (-len(stream) % 32)
    words = [
        sum(bit << place for place, bit in enumerate(stream[begin : begin + 32]))
        for begin in range(0, len(stream), 32)
    ]
    return [word - (1 << 32) if word >> 31 else word for word in words]


@pytest.mark.parametrize("bits", range(1, 9))
def test_unpack_bit_by_bit(bits):
    torch.manual_seed(bits)
    codes = torch.randint(0, 2**bits, (5, 37))
    words = torch.tensor([words_of(row, bits) for row in codes.tolist()], dtype=torch.int32)
    assert unpack(words, bits, 37).tolist() == codes.tolist()


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
    truth = torch.tensor(
        [
            [float(scales[group[i], o]) * int(codes[i, o] - zeros[group[i], o])
             for i in range(inputs)]
            for o in range(outputs)
        ]
    )  # fmt: skip

    def pack(_):
        packed = [words_of(column, bits) for column in codes.T.tolist()]
        made = {
            f"{LAYER}.qweight": torch.tensor(packed, dtype=torch.int32).T,
            f"{LAYER}.qzeros": torch.tensor(
                [words_of([z - less for z in row], bits) for row in zeros.tolist()],
                dtype=torch.int32,
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
    assert "the weights are others" in " ".join(ask(plain, coded).summary)


def test_awq(stored):
    """Codes stand along the outputs, those of a word in the order 0, 2, 4, 6, 1, 3, 5, 7."""
    torch.manual_seed(0)
    outputs, inputs, groups = 64, 32, 2
    codes = torch.randint(0, 16, (inputs, outputs))
    zeros = torch.randint(0, 16, (groups, outputs))
    scales = torch.rand(groups, outputs).half()
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def words(row: list[int]) -> list[int]:
        return words_of(
            [row[begin + place] for begin in range(0, outputs, 8) for place in order], 4
        )

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
    opened = open_codes(coded.manifest, coded.quantised[WEIGHT])
    pieces = [opened.rows(slice(0, 3)), opened.rows(slice(3, 21)), opened.rows(slice(21, 99))]
    torch.testing.assert_close(torch.cat(pieces), truth, rtol=1e-6, atol=1e-7)


def test_nearest_is_by_brute_force(stored, plain):
    """Codes that are all one too high are no nearest ones; half of them moved, half are."""

    def quantise(weight, moved=0):
        scale = weight.abs().amax(dim=1, keepdim=True) / 100
        codes = (weight / scale).round()
        codes[:moved] += 1
        return {WEIGHT: codes.to(torch.int8), f"{WEIGHT}_scale": scale}

    rows = plain.state[WEIGHT].shape[0]
    for moved, share in ((0, 1.0), (rows // 2, 0.5), (rows, 0.0)):
        coded = stored(lambda weight, m=moved: quantise(weight, m), f"moved{moved}")
        row = row_of(ask(plain, coded), WEIGHT)
        assert row["nearest"] == pytest.approx(share, abs=0.002)  # some lie in the middle


def test_the_tensor_that_is_no_rounding_is_named(tmp_path, open_path):
    """Most of a copy is the plain rounding, one tensor is not; and two copies are told apart."""
    other = "bert.encoder.layer.1.intermediate.dense.weight"

    def quantise(tensors, moved):
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
            save_file(
                quantise(tensors, change), folder / "model.safetensors", metadata={"format": "pt"}
            )
        opened[name] = open_path(folder)
    said = " ".join(ask(opened["a"], opened["b"]).summary)
    assert "Only in a: bert.embeddings.LayerNorm.bias." in said
    assert "b has 2 tensors as int8, one scale a row. " in said
    assert "in each of the 2 are the nearest to the other's that the scales allow: plain" in said
    said = " ".join(ask(opened["a"], opened["c"]).summary)
    assert (
        f"1 of them are plain rounding of the other's numbers; not so where only 0 % of {other}"
        in said
    )
    said = " ".join(ask(opened["b"], opened["c"]).summary)
    assert "Both have codes: b 2 tensors as int8, one scale a row, c 2 tensors as int8" in said


def in_four_bits_by_gptq(zero: int, code: int | None = None) -> Any:
    """Codes of 4 bits in one group, at random or all the same; the file stores zeros less 1."""

    def pack(weight):
        outputs, inputs = weight.shape
        codes = torch.randint(0, 16, (inputs, outputs)) if code is None else torch.full(
            (inputs, outputs), code)  # fmt: skip
        packed = [words_of(column, 4) for column in codes.T.tolist()]
        return {
            f"{LAYER}.qweight": torch.tensor(packed, dtype=torch.int32).T,
            f"{LAYER}.qzeros": torch.tensor([words_of([zero - 1] * outputs, 4)],
                                            dtype=torch.int32),
            f"{LAYER}.scales": torch.rand(1, outputs).half() + 0.1,
        }  # fmt: skip

    return pack


def in_float8(number: float = 1, scale: float = 0.01) -> Any:
    """Codes of float8 with one scale."""
    return lambda weight: {
        WEIGHT: (number * weight / 0.01).to(torch.float8_e4m3fn),
        f"{WEIGHT}_scale_inv": torch.full((1, 1), scale),
    }


FINE_GRAINED = {"quant_method": "fp8", "weight_block_size": [128, 128]}
IN_GPTQ = {"quant_method": "gptq", "bits": 4}


def problems(checkpoint) -> dict[str, Any]:
    """The checks that are not content, by name, but for what any model of random numbers has."""
    found = check(checkpoint, progress=silent).checks
    return {
        each.name: each
        for each in found
        if each.status != "ok" and each.name != "Under-trained tokens"
    }


@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "LlamaForCausalLM"])
@pytest.mark.parametrize(
    ("options", "dtype"),
    [(BITS4["double"], torch.bfloat16), (BITS4["nf4"], torch.float16),
     ({"load_in_8bit": True}, torch.float16)],
)  # fmt: skip
def test_no_false_alarm_of_bitsandbytes(tmp_path, open_path, architecture, options, dtype):
    """Scales are kept in float32 beside weights of half the width: that is as it should be."""
    whole = save_checkpoint(wide_model(architecture).to(dtype), tmp_path / "a")
    made = AUTO[architecture].from_pretrained(
        whole, quantization_config=BitsAndBytesConfig(**options), device_map="cpu", dtype=dtype
    )
    save_checkpoint(wide_model(architecture), tmp_path / "b")
    made.save_pretrained(tmp_path / "b")
    coded = open_path(tmp_path / "b")
    assert problems(coded) == {}
    (types,) = (each for each in check(coded, progress=silent).checks
                if each.name == "Number types")  # fmt: skip
    assert types.detail.startswith("Kept as codes that stand for other numbers: ")
    assert types.detail.endswith(f"; all others are kept as {str(dtype).removeprefix('torch.')}.")
    (codes,) = (each for each in types.evidence if each.problem == "codes")
    assert codes.count == len(coded.quantised)


@pytest.mark.parametrize(
    ("change", "said"),
    [(in_four_bits_by_gptq(zero=1), IN_GPTQ), (in_four_bits_by_gptq(zero=8), IN_GPTQ),
     (in_four_bits_by_gptq(zero=8, code=7), IN_GPTQ), (in_float8(), FINE_GRAINED)],
)  # fmt: skip
def test_no_false_alarm_of_other_codes(stored, change, said):
    """Zeros that are stored as 0, and codes that are all the same, are no weights of zero."""
    assert problems(stored(change, quantization=said)) == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [(in_four_bits_by_gptq(zero=8, code=8), IN_GPTQ), (in_float8(number=0), FINE_GRAINED),
     (in_float8(scale=0.0), FINE_GRAINED)],
)  # fmt: skip
def test_codes_that_all_stand_for_zero_are_found(stored, change, said):
    found = problems(stored(change, quantization=said))
    assert set(found) == {"Zero tensors"}
    (evidence,) = found["Zero tensors"].evidence
    assert (evidence.subject, evidence.count) == (WEIGHT, bert().get_parameter(WEIGHT).numel())


def test_a_scale_that_is_nan_is_no_matter_of_training(stored):
    found = problems(stored(in_float8(scale=math.nan), quantization=FINE_GRAINED))
    assert set(found) == {"NaN and infinity"}
    numbers = found["NaN and infinity"]
    assert f"which makes numbers of {WEIGHT} from codes" in numbers.evidence[0].detail
    assert "quantise" in (numbers.next_step or "")
    assert "learning rate" not in (numbers.next_step or "")


def test_what_trains_says_that_codes_are_not_trained(stored, plain):
    def warned(checkpoint) -> list[bool]:
        plan = training(checkpoint, progress=silent)
        tried = what_if(checkpoint, progress=silent, change="clone", text="", steps=0)
        return [
            any("no optimizer changes codes" in warning for warning in found.warnings)
            for found in (plan, tried)
        ]

    coded = stored(in_float8(), quantization=FINE_GRAINED)
    assert warned(coded) == [True, True]
    assert warned(plain) == [False, False]
    assert training(coded, progress=silent).warnings[0].startswith("1 weight is stored as float8")


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
    assert row["relative_change"] == pytest.approx(
        truth.norm().item() / tensors[WEIGHT].double().norm().item()
    )
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
    with pytest.raises(CheckpointError, match=r"stand for 0\.0 GB of numbers.*INSPECTOR_MODEL_MB"):
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
    ],
)  # fmt: skip
def test_codes_that_cannot_be_read_are_no_numbers(stored, plain, change):
    """The headers are listed; nothing is computed, and the sentence names the tensor."""
    coded = stored(change)
    assert overview(coded, progress=silent).tensors["name"].tolist()
    with pytest.raises(CheckpointError, match="as codes, in a way that this tool cannot read"):
        lens(coded, progress=silent, text="w1 w2")
    result = ask(plain, coded)
    row = row_of(result, WEIGHT)
    assert row["status"] == "not compared"
    assert math.isnan(row["relative_change"])
    assert any(each.startswith("Ties are not compared.") for each in result.warnings)
    assert result.vocabulary.matched == 60  # the embeddings are plain


def sound(kind: str) -> dict[str, torch.Tensor]:
    """The parts of a weight of (64, 32), as they should be."""
    state = {"shape": [64, 32], "blocksize": 64, "nested_blocksize": 16, "nested_offset": 0.5}
    words = torch.zeros(64, 32, dtype=torch.int32)
    return {
        "gptq": {"w.qweight": words[:4].T[:4].repeat(1, 16), "w.qzeros": words[:2, :8],
                 "w.scales": torch.ones(2, 64), "w.g_idx": words[0]},
        "awq": {"w.qweight": words[:32, :8], "w.qzeros": words[:2, :8],
                "w.scales": torch.ones(2, 64)},
        "packed": {"w.weight_packed": words[:, :4], "w.weight_scale": torch.ones(64, 2),
                   "w.weight_shape": torch.tensor([64, 32]), "w.weight_zero_point": words[:8, :2],
                   "w.weight_g_idx": words[0]},
        "scaled": {"w.weight": words.to(torch.float8_e4m3fn), "w.weight_scale": torch.ones(64, 1)},
        "blocks": {"w.weight": words.to(torch.float8_e4m3fn),
                   "w.weight_scale_inv": torch.ones(64, 5)},
        "zeros": {"w.weight": words.to(torch.int8), "w.weight_scale": torch.ones(64),
                  "w.weight_zero_point": words[:, 0].to(torch.int8)},
        "mxfp4": {"w.weight_packed": words[:, :16].to(torch.uint8),
                  "w.weight_scale": words[:, :1].to(torch.uint8)},
        "nvfp4": {"w.weight_packed": words[:, :16].to(torch.uint8),
                  "w.weight_scale": torch.ones(64, 2).to(torch.float8_e4m3fn),
                  "w.weight_global_scale": torch.ones(1)},
        "modelopt": {"w.weight": words[:, :16].to(torch.uint8),
                     "w.weight_scale": torch.ones(64, 2).to(torch.float8_e4m3fn),
                     "w.weight_scale_2": torch.ones(())},
        "experts": {"w_blocks": torch.zeros(2, 64, 1, 16, dtype=torch.uint8),
                    "w_scales": torch.zeros(2, 64, 1, dtype=torch.uint8)},
        "int8": {"w.weight": words.to(torch.int8), "w.SCB": torch.ones(64),
                 "w.weight_format": torch.zeros((), dtype=torch.uint8)},
        "nf4": {"w.weight": torch.zeros(1024, 1, dtype=torch.uint8),
                "w.weight.absmax": torch.zeros(32, dtype=torch.uint8),
                "w.weight.quant_map": torch.ones(16), "w.weight.nested_absmax": torch.ones(2),
                "w.weight.nested_quant_map": torch.ones(256),
                "w.weight.quant_state.bitsandbytes__nf4": torch.frombuffer(
                    bytearray(json.dumps(state).encode()), dtype=torch.uint8)},
    }[kind]  # fmt: skip


KINDS = ("gptq", "awq", "packed", "scaled", "blocks", "zeros", "int8", "nf4", "mxfp4", "nvfp4",
         "modelopt", "experts")  # fmt: skip
DTYPES = ("float32", "float16", "int32", "int64", "uint8", "int8", "float8_e4m3fn")
SIZES = st.sampled_from([0, 1, 2, 4, 8, 16, 32, 64, 256])
STATES = st.one_of(
    st.binary(max_size=40),
    st.fixed_dictionaries(
        {},
        optional={
            "shape": st.lists(st.integers(-1, 64), max_size=3),
            "blocksize": st.integers(-1, 64),
            "nested_blocksize": st.one_of(st.none(), st.integers(-1, 64)),
            "nested_offset": st.one_of(st.text(max_size=2), st.floats()),
            "dtype": st.one_of(st.integers(), st.just("float16")),
        },
    ).map(lambda told: json.dumps(told).encode()),
)


@st.composite
def hostile_tensors(draw) -> dict[str, torch.Tensor]:
    """Parts of a weight, some of them gone or of another dtype, shape or content."""
    made = dict(sound(draw(st.sampled_from(KINDS))))
    for name in draw(st.lists(st.sampled_from(sorted(made)), max_size=2, unique=True)):
        change = draw(st.sampled_from(["gone", "dtype", "shape", "content"]))
        if change == "gone":
            del made[name]
        elif change == "dtype":
            made[name] = made[name].to(getattr(torch, draw(st.sampled_from(DTYPES))))
        elif change == "shape":
            made[name] = made[name].new_zeros(draw(st.lists(SIZES, max_size=3)))
        elif "quant_state" in name:
            made[name] = torch.frombuffer(bytearray(draw(STATES) or b" "), dtype=torch.uint8)
        else:
            made[name] = torch.full_like(made[name].float(), draw(st.integers(-128, 127))).to(
                made[name].dtype
            )
    return made | {"other": torch.ones(2)}


def manifest_of(path: Path, tensors: dict[str, torch.Tensor], said: dict[str, Any]) -> Manifest:
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    header = read_safetensors(path, path.name)
    files = (FileInfo(path.name, "safetensors", path.stat().st_size, "", path),)
    return Manifest("", "any", "upload", path.parent, files, header.tensors, {}, None, (), said)


@pytest.mark.parametrize("kind", KINDS)
def test_sound_parts_are_read(tmp_path, kind):
    manifest = manifest_of(tmp_path / "w.safetensors", sound(kind), {"weight_block_size": [1, 7]})
    (quantised,) = find_quantised(manifest).values()
    shape = (2, 32, 64) if kind == "experts" else (64, 32)
    assert quantised.info.shape == shape
    assert read_quantised(manifest, quantised).shape == shape


@settings(max_examples=400, deadline=None, derandomize=True)
@given(tensors=hostile_tensors(), said=st.sampled_from([{}, {"weight_block_size": [1, 7]}]))
def test_any_parts_are_read_or_left_alone(tmp_path_factory, tensors, said):
    """Parts that contradict each other are no weight, and what is found can be read in full."""
    path = tmp_path_factory.mktemp("codes") / "w.safetensors"
    manifest = manifest_of(path, tensors, said)
    for quantised in find_quantised(manifest).values():
        numbers = read_quantised(manifest, quantised)
        assert numbers.shape == quantised.info.shape
        assert numbers.numel() <= 32 * path.stat().st_size
