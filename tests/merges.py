"""An adapter for any checkpoint, the model that it is merged into, and a mixture: for tests that ask every question."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.manifests.manifest import Manifest
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.families import random_model, save_checkpoint

RANK, ALPHA = 2, 4


def write_merge(base: Path, folder: Path) -> tuple[Path, Path]:
    """Write an adapter of a base's first two layers' matrices as PEFT does, and the merged model."""
    state = load_file(base / "model.safetensors")
    names = [name for name, each in state.items() if name.endswith("query.weight") and each.dim() == 2]
    adapter, merged = folder / "adapter", folder / "merged"
    parts = {}
    for name in names:
        module = f"base_model.model.{name.removesuffix('.weight')}"
        rows, columns = state[name].shape
        one, two = torch.randn(RANK, columns) * 0.05, torch.randn(rows, RANK) * 0.05
        parts |= {f"{module}.lora_A.weight": one, f"{module}.lora_B.weight": two}
        state[name] = (state[name].float() + two @ one * ALPHA / RANK).to(state[name].dtype)
    _save(adapter, parts, "adapter_model.safetensors")
    (adapter / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA}))
    shutil.copytree(base, merged)
    save_file(state, merged / "model.safetensors", metadata={"format": "pt"})
    return adapter, merged


def write_adapter(checkpoint: StagedCheckpoint, folder: Path) -> Path:
    """Write an adapter of the largest matrix of any checkpoint."""
    tensor = max((each for each in checkpoint.tensors if len(each.shape) == 2), key=lambda each: each.nbytes)
    rows, columns = tensor.shape
    module = f"base_model.model.{tensor.name.removesuffix('.weight')}"
    parts = {f"{module}.lora_A.weight": torch.ones(RANK, columns), f"{module}.lora_B.weight": torch.ones(rows, RANK)}
    _save(folder, parts, "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA}))
    return folder


def write_mixture(folder: Path) -> Path:
    """Write a small mixture of experts with a tokenizer."""
    return save_checkpoint(random_model("MixtralForCausalLM"), folder / "mixture")


def subject(verb: str, checkpoint: StagedCheckpoint) -> StagedCheckpoint:
    """The checkpoint that a question is about: an adapter of this one or a mixture, where a dense model is refused."""
    if verb == "experts":
        return StagedCheckpoint(
            _opened(write_mixture(checkpoint.settings.home / "made"), checkpoint), settings=checkpoint.settings
        )
    if verb != "adapter":
        return checkpoint
    return StagedCheckpoint(_adapter_of(checkpoint), settings=checkpoint.settings)


def others(verb: str, checkpoint: StagedCheckpoint) -> dict[str, str]:
    """The fingerprints of the other checkpoints that a question names: the same one again, and an adapter of it."""
    own = checkpoint.manifest.fingerprint
    if verb in ("compare", "base"):
        return {"other": own}
    if verb != "verify-merge":
        return {}
    return {"adapter": _adapter_of(checkpoint).fingerprint, "merged": own}


def _adapter_of(checkpoint: StagedCheckpoint) -> Manifest:
    settings = checkpoint.settings
    folder = settings.home / "made" / checkpoint.manifest.fingerprint[:8]
    adapter = folder if folder.exists() else write_adapter(checkpoint, folder)
    return _opened(adapter, checkpoint)


def _opened(folder: Path, beside: StagedCheckpoint) -> Manifest:
    manifest, _ = open_checkpoint(
        CheckpointRef("path", str(folder)), settings=beside.settings, progress=lambda *_: None, restrict_paths=False
    )
    return manifest


def _save(folder: Path, state: dict[str, torch.Tensor], name: str) -> None:
    folder.mkdir(parents=True)
    save_file(state, folder / name, metadata={"format": "pt"})
