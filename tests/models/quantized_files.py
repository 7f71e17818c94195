"""Checkpoints whose weights are stored as codes, for the tests of what reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, BitsAndBytesConfig

from inspector.analyses.checks.compute import check
from tests.conftest import silent
from tests.families import random_model, save_checkpoint

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


def bert():
    return random_model("BertForMaskedLM", intermediate_size=64)


def wide_model(architecture: str):
    return random_model(architecture, **WIDE[architecture])


def by_bitsandbytes(folder: Path, architecture: str, **options: Any) -> Any:
    """A model that transformers and bitsandbytes quantize, saved beside its tokenizer."""
    config = BitsAndBytesConfig(bnb_4bit_compute_dtype=torch.float32, **options)
    return AUTO[architecture].from_pretrained(folder, quantization_config=config, device_map="cpu", dtype=torch.float32)


def save_coded(folder: Path, change: Callable[[torch.Tensor], dict[str, torch.Tensor]], said: Any = None) -> Path:
    """Save BERT with what `change` makes of one weight in its place; `said` in its config."""
    save_checkpoint(bert(), folder)
    tensors = load_file(folder / "model.safetensors")
    weight = tensors.pop(WEIGHT)
    tensors |= {key: value.contiguous() for key, value in change(weight).items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    if said is not None:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config["quantization_config"] = said
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def bits_of(number: int, count: int) -> list[int]:
    return [number >> place & 1 for place in range(count)]


def words_of(codes: list[int], bits: int) -> list[int]:
    """Codes one after the other, lowest bit first, in 32-bit words: written bit by bit."""
    stream = [bit for code in codes for bit in bits_of(code, bits)]
    stream += [0] * (-len(stream) % 32)
    words = [
        sum(bit << place for place, bit in enumerate(stream[begin : begin + 32])) for begin in range(0, len(stream), 32)
    ]
    return [word - (1 << 32) if word >> 31 else word for word in words]


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
    return {each.name: each for each in found if each.status != "ok" and each.name != "Under-trained tokens"}
