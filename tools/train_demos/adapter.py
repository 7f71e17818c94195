"""Train the bundled adapter, a LoRA of demo-gpt2: `python -m tools.train_demos.adapter --out FOLDER`.

Its text needs no download: the help topics that come with every Python.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import peft
import torch
from tokenizers import Tokenizer
from transformers import GPT2LMHeadModel

from inspector.demo import DEMOS
from tools.train_demos.snapshots import sentences

BASE = DEMOS["demo-gpt2"]
STEPS, BATCH, WINDOW, RATE, SEED = 400, 16, 64, 2e-3, 0
CONFIG = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM")
CARD = """\
# demo-gpt2-adapter

A LoRA adapter of demo-gpt2, as PEFT {peft} saves it: rank 4, alpha 8, on the attention's `c_attn`.

It was trained for {steps} steps on {lines:,} sentences of the help topics that come with Python {python}
(`pydoc_data.topics`, Copyright Python Software Foundation, under the PSF License Version 2). This package does not
contain the text. On that text, the loss per token falls from {before:.2f} to {after:.2f}: the base knows no Python.

To reproduce it with the same versions:

    python -m tools.train_demos.adapter --out FOLDER
"""


def windows(lines: Sequence[str]) -> torch.Tensor:
    """The text as rows of ids, (windows, WINDOW); what is left over at its end is dropped."""
    tokenizer = Tokenizer.from_file(str(BASE.folder / "tokenizer.json"))
    encoded = tokenizer.encode_batch([f"{line}\n" for line in lines])
    ids = torch.tensor([token for each in encoded for token in each.ids])
    return ids[: len(ids) // WINDOW * WINDOW].view(-1, WINDOW)


def loss(model: Any, rows: torch.Tensor) -> float:
    """The mean loss per token."""
    with torch.no_grad():
        return float(model(input_ids=rows, labels=rows).loss)


def train(rows: torch.Tensor, *, steps: int = STEPS) -> Any:
    """Train the adapter on demo-gpt2.

    Args:
        rows: The text, from `windows`.

    Returns:
        The model with its adapter.
    """
    torch.manual_seed(SEED)
    base: Any = GPT2LMHeadModel.from_pretrained(BASE.folder)
    base.name_or_path = BASE.name
    model = peft.get_peft_model(base, CONFIG)
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=RATE)
    for _ in range(steps):
        batch = rows[torch.randint(len(rows), (BATCH,))]
        model(input_ids=batch, labels=batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def main(arguments: list[str] | None = None) -> None:
    """Train the bundled adapter."""
    from pydoc_data.topics import topics

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the adapter")
    out: Path = parser.parse_args(arguments).out
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    lines = sentences(topics)
    rows = windows(lines)
    model = train(rows)
    with model.disable_adapter():
        before = loss(model, rows)
    model.save_pretrained(str(out))
    card = CARD.format(
        peft=peft.__version__,
        steps=STEPS,
        lines=len(lines),
        python=platform.python_version(),
        before=before,
        after=loss(model, rows),
    )
    (out / "README.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()
