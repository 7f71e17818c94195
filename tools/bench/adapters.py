"""Processor seconds until a base with an adapter on it has answered once, beside the base alone.

Both are opened and asked for the logits of one token in this process, in turn, after everything is imported: a first
answer reads every weight. Ratios are medians of pairs.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import peft
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from inspector.models.adapters.overlay import adapted
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load
from inspector.settings import Settings, read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef

ROUNDS = 5
SIZES = {"271M in bfloat16": 16, "a layer of it": 1}  # layers
CONFIG: dict[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_attention_heads": 16,
    "vocab_size": 32_000,
}
LORA: dict[str, Any] = {"r": 16, "lora_alpha": 32, "target_modules": ["q_proj", "v_proj"]}


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(f"processor seconds until the first answer, {ROUNDS} rounds in turn\n")
    print("| base | alone, median s | with the adapter, median s | ratio |\n|---|---:|---:|---:|")
    for size, layers in SIZES.items():
        with tempfile.TemporaryDirectory() as temporary:
            base, adapter = _write(Path(temporary), layers)
            settings = read_settings({"INSPECTOR_HOME": str(Path(temporary) / "home")})
            taken = [(_seconds(settings, base), _seconds(settings, base, adapter)) for _ in range(ROUNDS + 1)][1:]
        alone, both = (statistics.median(times) for times in zip(*taken, strict=True))
        ratio = statistics.median(second / first for first, second in taken)
        print(f"| {size} | {alone:.2f} | {both:.2f} | {ratio:.2f} |")


def _write(folder: Path, layers: int) -> tuple[Path, Path]:
    """A random base, and a LoRA of its queries and values."""
    torch.manual_seed(0)
    model: Any = LlamaForCausalLM(LlamaConfig(**CONFIG, num_hidden_layers=layers))
    model.to(torch.bfloat16)
    model.save_pretrained(folder / "base")
    wrapped: Any = peft.get_peft_model(model, peft.LoraConfig(**LORA))
    for parameter in wrapped.parameters():
        if parameter.requires_grad:
            parameter.data += 0.01 * torch.randn_like(parameter)
    wrapped.save_pretrained(str(folder / "adapter"))
    return folder / "base", folder / "adapter"


def _seconds(settings: Settings, *folders: Path) -> float:
    started = time.process_time()
    first, *adapter = [_open(folder, settings) for folder in folders]
    loaded = load(adapted(first, *adapter) if adapter else first, "causal_lm", device="cpu", dtype="bfloat16")
    with torch.inference_mode():
        loaded.model(input_ids=torch.ones(1, 1, dtype=torch.long))
    return time.process_time() - started


def _open(folder: Path, settings: Settings) -> StagedCheckpoint:
    manifest, _ = open_checkpoint(
        CheckpointRef("path", str(folder)), settings=settings, progress=lambda *_: None, restrict_paths=False
    )
    return StagedCheckpoint(manifest, settings=settings)


if __name__ == "__main__":
    main()
