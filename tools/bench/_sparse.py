"""Write checkpoints of any size in seconds: real names, shapes and headers, holes or random values for numbers."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ITEMSIZES = {"BF16": 2, "F32": 4, "F8_E4M3": 1}  # of safetensors' dtypes
FILLED_AT_ONCE = 1 << 25  # numbers
BLOCK = 128  # rows and columns that share a scale in DeepSeek-V3

Tensor = tuple[str, str, tuple[int, ...]]  # name, dtype, shape


@dataclass(frozen=True, slots=True)
class Shape:
    """A public checkpoint by its configuration; its tensors follow from that."""

    config: Mapping[str, Any]
    shards: int
    tensors: int  # as the original's index counts them
    parameters: int  # as its card counts them


def tensors_of(config: Mapping[str, Any]) -> list[Tensor]:
    """Every stored tensor of a configuration, in the model's order."""
    layers = {"llama": _llama_layer, "deepseek_v3": _deepseek_layer}[config["model_type"]]
    rows, width = config["vocab_size"], config["hidden_size"]
    stored: list[Tensor] = [("model.embed_tokens.weight", "BF16", (rows, width))]
    for layer in range(config["num_hidden_layers"]):
        start = f"model.layers.{layer}"
        stored += [(f"{start}.{name}", dtype, shape) for name, dtype, shape in layers(config, layer)]
    stored.append(("model.norm.weight", "BF16", (width,)))
    if not config["tie_word_embeddings"]:
        stored.append(("lm_head.weight", "BF16", (rows, width)))
    return stored


def write(folder: Path, shape: Shape) -> None:
    """Write a checkpoint's folder: true headers, a true index, and no numbers."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(shape.config))
    tensors, shards = tensors_of(shape.config), shape.shards
    if shards == 1:
        write_shard(folder / "model.safetensors", tensors)
        return
    weight_map: dict[str, str] = {}
    for shard in range(shards):
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        held = tensors[shard * len(tensors) // shards : (shard + 1) * len(tensors) // shards]
        write_shard(folder / name, held)
        weight_map |= {tensor: name for tensor, _, _ in held}
    total = sum(ITEMSIZES[dtype] * math.prod(shape) for _, dtype, shape in tensors)
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def write_shard(path: Path, tensors: list[Tensor]) -> int:
    """Write one sparse safetensors file; returns where its numbers begin.

    Matrices and vectors in bfloat16 begin with four numbers of their own, so that no two are equal;
    all else is zero.
    """
    header, place = {}, 0
    for name, dtype, shape in tensors:
        nbytes = ITEMSIZES[dtype] * math.prod(shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + nbytes]}
        place += nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + place)
        for name, dtype, _ in tensors:
            if dtype == "BF16":
                file.seek(8 + len(text) + header[name]["data_offsets"][0])
                file.write(_mark(name))
    return 8 + len(text)


def fill(folder: Path) -> None:
    """Put random numbers of either sign, from 2^-7 to 2^-5, where a checkpoint in bfloat16 has holes."""
    random = np.random.default_rng(0)
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("r+b") as file:
            begin = 8 + struct.unpack("<Q", file.read(8))[0]
            left = (path.stat().st_size - file.seek(begin)) // ITEMSIZES["BF16"]
            while left:
                numbers = random.integers(0, 1 << 16, min(left, FILLED_AT_ONCE), dtype=np.uint16)
                file.write((numbers & 0x80FF | 0x3C00).data)
                left -= len(numbers)
            os.fsync(file.fileno())


def _mark(name: str) -> bytes:
    """Four numbers in bfloat16, from 0.01 to 1."""
    digest = hashlib.sha256(name.encode()).digest()
    return bytes(value for low in digest[:4] for value in (low, 0x3C | low & 3))


def _llama_layer(config: Mapping[str, Any], layer: int) -> Iterator[Tensor]:
    width, inner = config["hidden_size"], config["intermediate_size"]
    keys = width // config["num_attention_heads"] * config["num_key_value_heads"]
    yield "input_layernorm.weight", "BF16", (width,)
    for name, shape in (
        ("mlp.down_proj", (width, inner)),
        ("mlp.gate_proj", (inner, width)),
        ("mlp.up_proj", (inner, width)),
        ("self_attn.k_proj", (keys, width)),
        ("self_attn.o_proj", (width, width)),
        ("self_attn.q_proj", (width, width)),
        ("self_attn.v_proj", (keys, width)),
    ):
        yield f"{name}.weight", "BF16", shape
    yield "post_attention_layernorm.weight", "BF16", (width,)


def _deepseek_layer(config: Mapping[str, Any], layer: int) -> Iterator[Tensor]:
    width, heads = config["hidden_size"], config["num_attention_heads"]
    queries, keys = config["q_lora_rank"], config["kv_lora_rank"]
    rope, plain, values = (config[f"{name}_head_dim"] for name in ("qk_rope", "qk_nope", "v"))
    yield "input_layernorm.weight", "BF16", (width,)
    yield "self_attn.kv_a_layernorm.weight", "BF16", (keys,)
    yield "self_attn.q_a_layernorm.weight", "BF16", (queries,)
    for name, shape in (
        ("q_a_proj", (queries, width)),
        ("q_b_proj", (heads * (plain + rope), queries)),
        ("kv_a_proj_with_mqa", (keys + rope, width)),
        ("kv_b_proj", (heads * (plain + values), keys)),
        ("o_proj", (width, heads * values)),
    ):
        yield from _scaled(f"self_attn.{name}", shape)
    yield "post_attention_layernorm.weight", "BF16", (width,)
    if layer < config["first_k_dense_replace"]:
        yield from _gated("mlp", width, config["intermediate_size"])
        return
    inner, experts = config["moe_intermediate_size"], config["n_routed_experts"]
    yield "mlp.gate.weight", "BF16", (experts, width)
    yield "mlp.gate.e_score_correction_bias", "F32", (experts,)
    yield from _gated("mlp.shared_experts", width, inner * config["n_shared_experts"])
    for expert in range(experts):
        yield from _gated(f"mlp.experts.{expert}", width, inner)


def _gated(name: str, width: int, inner: int) -> Iterator[Tensor]:
    yield from _scaled(f"{name}.gate_proj", (inner, width))
    yield from _scaled(f"{name}.up_proj", (inner, width))
    yield from _scaled(f"{name}.down_proj", (width, inner))


def _scaled(name: str, shape: tuple[int, int]) -> Iterator[Tensor]:
    yield f"{name}.weight", "F8_E4M3", shape
    yield f"{name}.weight_scale_inv", "F32", (-(-shape[0] // BLOCK), -(-shape[1] // BLOCK))


def _llama(
    width: int, inner: int, layers: int, heads: int, *, rows: int = 128_256, tied: bool = False
) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": rows,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131_072,
        "rope_theta": 500_000.0,
        "tie_word_embeddings": tied,
        "torch_dtype": "bfloat16",
    }


DEEPSEEK_V3 = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "vocab_size": 129_280,
    "hidden_size": 7_168,
    "intermediate_size": 18_432,
    "moe_intermediate_size": 2_048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "n_group": 8,
    "topk_group": 4,
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "first_k_dense_replace": 3,
    "q_lora_rank": 1_536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "max_position_embeddings": 163_840,
    "rope_theta": 10_000,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "quantization_config": {
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "quant_method": "fp8",
        "weight_block_size": [BLOCK, BLOCK],
    },
}
SHAPES = {
    "1.2B": Shape(_llama(2_048, 8_192, 16, 32, tied=True), 1, 146, 1_235_814_400),
    "8B": Shape(_llama(4_096, 14_336, 32, 32), 4, 291, 8_030_261_248),
    "70B": Shape(_llama(8_192, 28_672, 80, 64, rows=32_000), 15, 723, 68_976_648_192),
    "405B": Shape(_llama(16_384, 53_248, 126, 128), 191, 1_137, 405_853_388_800),
    "V3": Shape(DEEPSEEK_V3, 161, 90_427, 671_026_419_200),
}
