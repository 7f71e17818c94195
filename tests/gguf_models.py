"""Models of transformers as GGUF files, converted as llama.cpp's convert_hf_to_gguf.py does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from tests.gguf_files import write_gguf

SMALL = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 128,
}
ARCHITECTURES = {
    "llama": ("llama", {"head_dim": 16}),
    "qwen2": ("qwen2", {"head_dim": 16, "tie_word_embeddings": True}),
    "qwen3": ("qwen3", {}),
    "gemma": ("gemma", {}),
    "gemma2": ("gemma2", {"query_pre_attn_scalar": 32, "sliding_window": 4}),
    "gemma3": ("gemma3_text", {"query_pre_attn_scalar": 32, "sliding_window": 4, "num_hidden_layers": 7}),
}


def small_model(architecture: str, **settings: Any) -> PreTrainedModel:
    """A random model whose norms and biases are random, too."""
    model_type, own = ARCHITECTURES[architecture]
    config = AutoConfig.for_model(model_type, **{**SMALL, **own, **settings})
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=0.0 if "gemma" in architecture or "bias" in name else 1.0, std=0.2)
    return model.eval()


def convert(
    model: PreTrainedModel,
    path: Path,
    architecture: str,
    *,
    block: str = "",
    more: Mapping[str, Any] | None = None,
    extra: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write a model as a GGUF file.

    Args:
        block: The type of its matrices; "": float32.
        more: Metadata beside what its settings are, or in its place.
        extra: Tensors beside its own.
    """
    config = model.config
    names = gguf.get_tensor_name_map(_architecture(architecture), config.num_hidden_layers)
    tensors, tied = {}, config.tie_word_embeddings
    for name, tensor in model.state_dict().items():
        if tied and name == "lm_head.weight":
            continue
        theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert theirs is not None, name
        numbers = tensor.float().numpy()
        if architecture == "llama" and "q_proj" in name:
            numbers = permuted(numbers, config.num_attention_heads)
        if architecture == "llama" and "k_proj" in name:
            numbers = permuted(numbers, config.num_key_value_heads)
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            numbers = numbers + 1
        tensors[theirs] = np.ascontiguousarray(numbers)
    tensors |= extra or {}
    blocks = {name: block for name, tensor in tensors.items() if block and tensor.ndim == 2}
    metadata = {f"{architecture}.{key}": value for key, value in _settings(config).items()}
    write_gguf(
        path, tensors, blocks=blocks, architecture=architecture, metadata=metadata | (dict(more) if more else {})
    )


def permuted(weights: np.ndarray, heads: int) -> np.ndarray:
    """The rows of a rotary matrix as LlamaModel.permute orders them."""
    halves = weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])
    return halves.swapaxes(1, 2).reshape(weights.shape)


def llama3_factors(config: Any) -> np.ndarray:
    """By what the frequencies of Llama 3's rotary positions are divided, as LlamaModel.generate_extra_tensors says."""
    rope, size = config.rope_parameters, config.head_dim
    low, high, factor = (rope[each] for each in ("low_freq_factor", "high_freq_factor", "factor"))
    waves = 2 * math.pi * rope["rope_theta"] ** (np.arange(0, size, 2) / size)
    turns = rope["original_max_position_embeddings"] / waves
    smooth = ((turns - low) / (high - low)).clip(0, 1)
    return (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)


def _architecture(name: str) -> gguf.MODEL_ARCH:
    return next(arch for arch, called in gguf.MODEL_ARCH_NAMES.items() if called == name)


def _settings(config: Any) -> dict[str, Any]:
    rope = config.rope_parameters
    found = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "rope.freq_base": float(rope.get("full_attention", rope)["rope_theta"]),
    }
    scaling = rope.get("full_attention", rope)
    if scaling["rope_type"] in ("linear", "yarn"):
        found |= {"rope.scaling.type": scaling["rope_type"], "rope.scaling.factor": float(scaling["factor"])}
    if scaling["rope_type"] == "yarn":
        found["rope.scaling.original_context_length"] = scaling["original_max_position_embeddings"]
    if config.model_type != "qwen2":
        found |= {"attention.key_length": config.head_dim, "attention.value_length": config.head_dim}
    if config.model_type in ("gemma2", "gemma3_text"):
        found["attention.sliding_window"] = config.sliding_window
    if config.model_type == "gemma2":
        found |= {
            f"{each}_logit_softcapping": getattr(config, f"{each}_logit_softcapping") for each in ("attn", "final")
        }
    return found
