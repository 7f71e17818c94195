"""What sentence-transformers writes beside a model: modules.json, and a folder for each module."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import T5EncoderModel

from tests.families import random_model, save_checkpoint

# As versions up to 4 name their modules, and as version 6 does
OLD = tuple(f"sentence_transformers.models.{name}" for name in ("Transformer", "Pooling", "Normalize"))
NEW = (
    "sentence_transformers.base.modules.transformer.Transformer",
    "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "sentence_transformers.base.modules.normalize.Normalize",
)
DENSE = (*OLD[:2], "sentence_transformers.models.Dense.Dense", OLD[2])


def add_modules(folder: Path, types: Sequence[str] = OLD, *, inner: str = "", **settings: Any) -> Path:
    """Make a saved model the first module of a pipeline.

    Args:
        inner: The folder of the model, where it is not the pipeline's own.
        settings: Of sentence_bert_config.json.
    """
    home = folder
    if inner:
        home = folder / inner
        home.mkdir()
        for path in list(folder.iterdir()):
            if path != home:
                shutil.move(path, home / path.name)
        write_json(folder / "config.json", {"__version__": "0.2.5"})
    named = [(each, each.rpartition(".")[2]) for each in types]
    places = [inner, *(f"{number}_{name}" for number, (_, name) in enumerate(named) if number)]
    write_json(
        folder / "modules.json",
        [
            {"idx": number, "name": str(number), "path": place, "type": each}
            for number, (place, (each, _)) in enumerate(zip(places, named, strict=True))
        ],
    )
    for place in places[1:]:
        (folder / place).mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    write_json(folder / places[1] / "config.json", pooling)
    for place in places:
        if place.endswith("_Dense"):
            write_json(folder / place / "config.json", {"in_features": 32, "out_features": 32, "bias": False})
            save_file({"linear.weight": torch.eye(32)}, folder / place / "model.safetensors")
    write_json(home / "sentence_bert_config.json", settings or {"max_seq_length": 32, "do_lower_case": False})
    return folder


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def set_config(folder: Path, **values: Any) -> Path:
    """Change config.json."""
    path = folder / "config.json"
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | values)
    return folder


def save_base(architecture: str, folder: Path) -> Path:
    """Save the base model alone, under a config.json that names the class with the head."""
    model = random_model(architecture, pad_token_id=0)  # the tokenizer's
    base = model
    if architecture == "T5ForConditionalGeneration":
        base = T5EncoderModel(model.config)
    elif model.base_model is not model:
        base = model.base_model
    return set_config(save_checkpoint(base, folder), architectures=[architecture])
