"""Adapters as PEFT makes and saves them, of every kind that is merged here."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import torch

from tests.families import random_model

TARGETS = ["q_proj", "v_proj", "down_proj"]
LORA: dict[str, Any] = {"r": 4, "lora_alpha": 8, "target_modules": TARGETS}
EMBEDDED: dict[str, Any] = {**LORA, "target_modules": ["embed_tokens", "q_proj"]}
KINDS: dict[str, Callable[[], peft.PeftConfig]] = {
    "LoRA": lambda: peft.LoraConfig(**LORA),
    "rsLoRA": lambda: peft.LoraConfig(**LORA, use_rslora=True),
    "patterns": lambda: peft.LoraConfig(
        **LORA, rank_pattern={"v_proj": 2}, alpha_pattern={"layers.1.self_attn.q_proj": 3}
    ),
    "DoRA": lambda: peft.LoraConfig(**LORA, use_dora=True),
    "embeddings": lambda: peft.LoraConfig(**EMBEDDED),
    "a whole head": lambda: peft.LoraConfig(**LORA, modules_to_save=["lm_head"]),
    "(IA)³": lambda: peft.IA3Config(target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
    "LoHa": lambda: peft.LoHaConfig(r=4, alpha=8, target_modules=TARGETS),
    "LoKr": lambda: peft.LoKrConfig(r=4, alpha=8, target_modules=TARGETS),
}
Case = tuple[Path, Path, Any]


def make(
    folder: Path, config: peft.PeftConfig, dtype: torch.dtype, architecture: str = "LlamaForCausalLM", **sizes: Any
) -> Case:
    """Save a base and an adapter that has learned something; also gives the base."""
    base: Any = random_model(architecture, **sizes).to(dtype)
    base.save_pretrained(folder / "base")
    adapted = peft.get_peft_model(copy.deepcopy(base), config)
    torch.manual_seed(1)
    for name, parameter in adapted.named_parameters():
        if parameter.requires_grad:
            spread = 1.0 if "ia3" in name else 0.05
            parameter.data += spread * torch.randn(parameter.shape).to(parameter.dtype)
    adapted.save_pretrained(str(folder / "adapter"))
    return folder / "base", folder / "adapter", base
