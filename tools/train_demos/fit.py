"""Run the steps of a demo training, log them, and keep what is needed to go on after a break."""

from __future__ import annotations

import logging
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tools.train_demos.optim import build_optimizers, rate_factor
from tools.train_demos.recipes import Trainee, TrainingRecipe
from tools.train_demos.vocabulary import save_tokenizer

logger = logging.getLogger(__name__)

LOG_COLUMNS = ("step", "loss", "pad_norm", "median_norm")


class TrainingState:
    """A training run: steps done, the log, and the optimizers."""

    def __init__(self, trainee: Trainee, recipe: TrainingRecipe) -> None:
        """Start at step 0; the first row of the log is the untrained model."""
        self.trainee = trainee
        self.recipe = recipe
        self.done = 0
        self.optimizers = build_optimizers(
            trainee.model, matrix_rate=recipe.matrix_rate, rate=recipe.rate, weight_decay=recipe.weight_decay
        )
        self.log: list[tuple[float, ...]] = []  # rows of LOG_COLUMNS
        self._losses: list[float] = []
        self._note(float("nan"))

    def step(self) -> None:
        """Take one step, and a row for the log at every few steps."""
        recipe = self.recipe
        self._losses.append(next(self.trainee.gradients))
        decay_from = recipe.steps - recipe.decay_steps
        factor = rate_factor(self.done, recipe.steps, recipe.warmup, decay_from)
        rates = (recipe.matrix_rate, recipe.rate)
        for optimizer, rate in zip(self.optimizers, rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
            optimizer.step()
            optimizer.zero_grad()
        self.done += 1
        if self.done % recipe.log_every == 0:
            self._note(sum(self._losses) / len(self._losses))
            self._losses.clear()

    def _note(self, loss: float) -> None:
        norms = self.trainee.table.detach().norm(dim=1)
        self.log.append((self.done, loss, norms[0].item(), norms.median().item()))

    def save(self, out: Path) -> None:
        """Write the checkpoint, its tokenizer and its log; every file appears whole."""
        out.mkdir(parents=True, exist_ok=True)
        is_bert = self.recipe.kind == "bert"
        with tempfile.TemporaryDirectory(dir=out.parent) as name:
            folder = Path(name)
            self.trainee.model.save_pretrained(folder)
            save_tokenizer(self.trainee.tokenizer, folder, is_bert=is_bert, positions=self.recipe.positions)
            columns = LOG_COLUMNS if is_bert else ("step", "loss", "median_norm")
            (folder / "training_log.csv").write_text(_csv(self.log, columns), encoding="utf-8")
            for file in sorted(folder.iterdir()):
                file.replace(out / file.name)

    def keep(self, snapshot: Path) -> None:
        """Write the state of the run, so that `resume` goes on exactly from here."""
        state = {f"model.{n}": p.detach() for n, p in self.trainee.model.named_parameters()}
        for parameter, key, values in self._moments():
            state[f"moment.{parameter}.{key}"] = values
        state["log"] = torch.tensor(self.log, dtype=torch.float64)
        partial = snapshot.with_suffix(".partial")
        save_file(state, partial)
        partial.replace(snapshot)

    def resume(self, snapshot: Path) -> None:
        """Take up a run of the same recipe where `keep` left it.

        Args:
            snapshot: A file that `keep` wrote at a step that was logged.
        """
        state = load_file(snapshot)
        self.log = [tuple(row) for row in state["log"].tolist()]
        self.done = int(self.log[-1][0])
        with torch.no_grad():
            for name, parameter in self.trainee.model.named_parameters():
                parameter.copy_(state[f"model.{name}"])
        for optimizer, number, parameter in self._numbered():
            prefix = f"moment.{number}."
            optimizer.state[parameter] = {
                name.removeprefix(prefix): values.clone() for name, values in state.items() if name.startswith(prefix)
            }
        next(islice(self.trainee.batches, self.done, self.done), None)

    def _numbered(self) -> list[tuple[torch.optim.Optimizer, int, Tensor]]:
        parameters = [
            (optimizer, parameter)
            for optimizer in self.optimizers
            for group in optimizer.param_groups
            for parameter in group["params"]
        ]
        return [(optimizer, i, parameter) for i, (optimizer, parameter) in enumerate(parameters)]

    def _moments(self) -> list[tuple[int, str, Tensor]]:
        return [
            (number, key, values)
            for optimizer, number, parameter in self._numbered()
            for key, values in optimizer.state[parameter].items()
        ]


def _csv(log: list[tuple[float, ...]], columns: tuple[str, ...]) -> str:
    chosen = [LOG_COLUMNS.index(column) for column in columns]
    rows = [",".join("" if row[i] != row[i] else f"{row[i]:.6g}" for i in chosen) for row in log]
    return "\n".join([",".join(columns), *rows, ""])


def fit(trainee: Trainee, recipe: TrainingRecipe, out: Path, *, snapshot: Path | None = None, every: int = 500) -> None:
    """Run all steps of a recipe and leave the checkpoint in a folder.

    Args:
        trainee: What to train, changed in place.
        recipe: How.
        out: Gets the checkpoint every few steps and at the end.
        snapshot: A file that keeps the state of the run; if it exists, the run goes on from it.
        every: Steps between two snapshots, a multiple of recipe.log_every.
    """
    run = TrainingState(trainee, recipe)
    if snapshot is not None and snapshot.exists():
        run.resume(snapshot)
    first, began = run.done, time.monotonic()
    while run.done < recipe.steps:
        run.step()
        if run.done % 100 == 0:
            loss = sum(row[1] for row in run.log[-10:]) / 10
            pace = (time.monotonic() - began) / (run.done - first)
            logger.info("step %d, loss %.3f, %.3f s a step", run.done, loss, pace)
        if run.done % every == 0:
            run.save(out)
            if snapshot is not None:
                run.keep(snapshot)
    run.save(out)
