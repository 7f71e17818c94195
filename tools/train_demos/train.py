"""Train a demo checkpoint on any text: `python -m tools.train_demos.train bert|gpt2 --help`."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from inspector.demo import DEMOS
from tools.train_demos import card, data
from tools.train_demos.fit import fit
from tools.train_demos.recipes import PREPARE, RECIPES, TrainingRecipe

logger = logging.getLogger(__name__)

REPORTS = {"bert": card.bert_report, "gpt2": card.gpt2_report}
OPTIONS = {
    "seed": int,
    "steps": int,
    "decay_steps": int,
    "vocab_size": int,
    "tokens": int,
    "warmup": int,
    "matrix_rate": float,
    "rate": float,
}
"""Settings of a recipe that the command line can change."""


def main(arguments: list[str] | None = None, *, recipes: Mapping[str, TrainingRecipe] = RECIPES) -> None:
    """Train, measure and describe one checkpoint."""
    options = _parse(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    settings = {name: options[name] for name in OPTIONS if options[name] is not None}
    recipe = replace(recipes[options["kind"]], **settings)
    split = data.split_lines(data.read_lines(options["text"]), recipe.seed)
    logger.info("%s", recipe)
    trainee = PREPARE[recipe.kind](recipe, split.train)
    fit(trainee, recipe, options["out"], snapshot=options["snapshot"], every=options["snapshot_every"])
    demo = DEMOS[f"demo-{recipe.kind}"]
    report = REPORTS[recipe.kind](trainee.model, trainee.tokenizer, split, examples=demo.examples, seed=recipe.seed)
    for line in (*report.quality, *(f"{k} -> {v}" for k, v in report.answers.items())):
        logger.info("%s", line)
    notice = options["notice"]
    card.write_card(
        options["out"],
        name=demo.name,
        description=demo.description,
        model=trainee.model,
        split=split,
        report=report,
        recipe=asdict(recipe),
        command=_command(recipe),
        notice=notice.read_text(encoding="utf-8") if notice else f"`{options['text'].name}`",
    )


def _parse(arguments: list[str] | None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=sorted(RECIPES))
    parser.add_argument("--text", type=Path, required=True, help="one sentence a line")
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    parser.add_argument("--notice", type=Path, help="source and license of the text, for the card")
    parser.add_argument("--snapshot", type=Path, help="file to go on from after a break")
    parser.add_argument("--snapshot-every", type=int, default=500, help="steps")
    for name, kind in OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind)
    return vars(parser.parse_args(arguments))


def _command(recipe: TrainingRecipe) -> str:
    settings = " ".join(f"--{n.replace('_', '-')} {getattr(recipe, n)}" for n in OPTIONS)
    return f"python -m tools.train_demos.train {recipe.kind} --text FILE --out FOLDER \\\n  {settings}"


if __name__ == "__main__":
    main()
