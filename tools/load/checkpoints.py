"""Two small checkpoints to upload: random weights, the demos' own tokenizers."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path

from inspector.demo import DEMOS

BERT, GPT2 = DEMOS["demo-bert"].folder, DEMOS["demo-gpt2"].folder
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def write_uploads(folder: Path) -> dict[str, bytes]:
    """Build both and pack them.

    Returns:
        Kind of person who uploads it -> archive.
    """
    import torch
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

    torch.manual_seed(7)
    models = {
        "first upload": (
            BERT,
            BertForMaskedLM(
                BertConfig(
                    vocab_size=_rows(BERT),
                    hidden_size=64,
                    num_hidden_layers=2,
                    num_attention_heads=2,
                    intermediate_size=128,
                )
            ),
        ),
        "second upload": (
            GPT2,
            GPT2LMHeadModel(GPT2Config(vocab_size=_rows(GPT2), n_embd=64, n_layer=2, n_head=2, n_positions=128)),
        ),
    }
    packed = {}
    for kind, (tokenizer, model) in models.items():
        place = folder / kind.replace(" ", "-")
        model.save_pretrained(place)
        for name in TOKENIZER:
            shutil.copy(tokenizer / name, place)
        packed[kind] = _pack(place)
    return packed


def _rows(folder: Path) -> int:
    return json.loads((folder / "config.json").read_text())["vocab_size"]


def _pack(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, path.name)
    return buffer.getvalue()
