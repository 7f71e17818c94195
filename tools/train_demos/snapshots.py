"""Train the bundled run of snapshots: `python -m tools.train_demos.snapshots --out FOLDER`.

Its text needs no download: the help topics that come with every Python.
"""

from __future__ import annotations

import argparse
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import torch

from tools.train_demos.fit import TrainingState
from tools.train_demos.recipes import RECIPES, TrainingRecipe, prepare_bert

STEPS = (0, 10, 30, 100, 200, 300, 400, 600, 800, 1000)
RECIPE = replace(
    RECIPES["bert"],
    steps=1_000,
    decay_steps=400,
    warmup=50,
    vocab_size=1_024,
    width=32,
    layers=2,
    heads=2,
    positions=64,
    tokens=600,
)
LOG = "training_log.csv"
LETTERS = 0.8  # share of a sentence that is letters and spaces; the rest of the text is code
CARD = """\
# demo-run

Ten snapshots of one small training run, for the page *Snapshots*: a BERT with MLM and NSP heads,
tied, 2 layers, width 32, 1,024 tokens. `checkpoint-0` is the untrained model.

It was trained on {lines:,} sentences of the help topics that come with Python {python}
(`pydoc_data.topics`, Copyright Python Software Foundation, under the PSF License Version 2). This
package does not contain the text. The model is far too small, and trained far too briefly, to be
useful; it shows how embeddings move during training.

`training_log.csv` contains the loss, the norm of the `[PAD]` row and the median norm every 10 steps.
To reproduce the run with the same version of Python and PyTorch:

    python -m tools.train_demos.snapshots --out FOLDER
"""


def sentences(topics: Mapping[str, str]) -> list[str]:
    """Cut prose into sentences, one a line; what is mostly no letters is left out.

    Args:
        topics: Title -> text, paragraphs set apart by empty lines.
    """
    found = []
    for title in sorted(topics):
        for paragraph in re.split(r"\n\s*\n", topics[title]):
            prose = " ".join(paragraph.split())
            found += [part for part in re.split(r"(?<=[.!?])\s+", prose) if _is_prose(part)]
    return found


def _is_prose(sentence: str) -> bool:
    plain = sum(c.isalpha() or c == " " for c in sentence)
    return sentence.endswith(".") and 20 <= len(sentence) <= 300 and plain > LETTERS * len(sentence)


def train(lines: Iterable[str], recipe: TrainingRecipe, steps: Iterable[int], out: Path) -> None:
    """Train a BERT and save it at chosen steps, as folders `checkpoint-<step>`.

    Args:
        lines: The text, a sentence a line.
        recipe: Of a BERT.
        steps: Of the snapshots, multiples of `recipe.log_every`.
        out: Takes the folders, and one log of the run.
    """
    run = TrainingState(prepare_bert(recipe, tuple(lines)), recipe)
    for step in sorted(steps):
        while run.done < step:
            run.step()
        folder = out / f"checkpoint-{step}"
        run.save(folder)
        (folder / LOG).replace(out / LOG)  # the last one has every step


def main(arguments: list[str] | None = None) -> None:
    """Train the bundled run."""
    from pydoc_data.topics import topics

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the snapshots")
    out: Path = parser.parse_args(arguments).out
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    lines = sentences(topics)
    train(lines, RECIPE, STEPS, out)
    card = CARD.format(lines=len(lines), python=platform.python_version())
    (out / "README.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()
