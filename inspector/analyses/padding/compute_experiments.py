"""Measure the gradient on the padding row: as the checkpoint is, and in control experiments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import torch

from inspector.analyses.padding import words_measuring as words
from inspector.analyses.padding.compute_batch import PaddedBatch, label_next, mask_some, write_again
from inspector.analyses.padding.compute_gradient import (
    Paths,
    Work,
    fresh_model,
    is_tied,
    look_ups,
    norms,
    predicting,
    reads_input_matrix,
    split,
    too_large,
    total,
)
from inspector.analyses.padding.result import AS_IT_IS, FRESH, LIFTED, UNMASKED, UNTIED, PaddingGradient
from inspector.models.build import MODEL_ERRORS
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load, plan_for
from inspector.models.naming import input_embedding
from inspector.models.placing.device import pick_device
from inspector.models.reading.lens_run import decoder_start
from inspector.models.running import Loaded, memory_guard
from inspector.models.vocabulary.labels import ORDINARY
from inspector.progress import Progress
from inspector.settings import Device, Dtype

ROLE = "as padding"
COLUMNS = ["experiment", "role", "token", "token_id", "row_norm", "input_path", "output_path", "total"]


@dataclass(frozen=True, slots=True)
class PaddingExperiments:
    """What the experiments gave; nothing but a note where none could be made."""

    note: str
    unmeasured: str = ""  # a clause: why there is no loss to differentiate
    gradient: PaddingGradient | None = None
    experiments: pd.DataFrame | None = None
    tied: bool | None = None
    loaded: Loaded | None = None
    batch: PaddedBatch | None = None  # what the model read: tokens masked where that is its task
    warnings: tuple[str, ...] = ()


def measure(
    checkpoint: StagedCheckpoint,
    batch: PaddedBatch,
    *,
    row: int,
    vocabulary: pd.DataFrame,
    progress: Progress,
    device: Device,
    dtype: Dtype,
) -> PaddingExperiments:
    """Differentiate the checkpoint's own loss on the sentences, and that of its controls.

    Args:
        vocabulary: What each row stands for: token, kind, norm.
        device: "auto", "cpu", "cuda" or "mps".
        dtype: "auto" is float32 everywhere: a gradient underflows in half precision.

    Raises:
        CheckpointError: If the model cannot be built.
        NotInCheckpointError: If the file lacks what its head needs.
    """
    task = _task(checkpoint)
    if task is None:
        return PaddingExperiments(words.NO_HEAD.format(name=checkpoint.name), "the file has no language-model head")
    dtype = "float32" if dtype == "auto" else dtype
    if refused := _unfit(checkpoint, batch, task, device=device, dtype=dtype):
        return refused
    loaded = load(checkpoint, task, device=device, dtype=dtype, progress=progress)
    if unmeasured := _unmeasurable(checkpoint, loaded, task):
        return unmeasured
    tied = is_tied(loaded.model)
    ordinary = torch.tensor(vocabulary["kind"].isin(ORDINARY).tolist())
    read, labels, how = _ask(checkpoint, batch, task, ordinary)
    if read is None or labels is None:
        return PaddingExperiments(how, tied=tied, loaded=loaded)
    work = Work(loaded.model, loaded.device, read, labels, shifted=task == "causal_lm")
    count = int(predicting(work).sum())
    if not count:
        return PaddingExperiments(words.NOTHING_ASKED, tied=tied, loaded=loaded)
    found = _differentiate(checkpoint, work, loaded, row=row, vocabulary=vocabulary, progress=progress)
    note = words.asked(how, count, batch.padding)
    if read.decoder_ids is not None and row == int(read.decoder_ids[0, 0]):
        note += words.STARTED_WITH_PADDING
    gradient = found.gradient and replace(found.gradient, task=task, predicted=count)
    return replace(found, note=found.note or note, gradient=gradient, tied=tied, loaded=loaded, batch=read)


def _unfit(
    checkpoint: StagedCheckpoint, batch: PaddedBatch, task: str, *, device: Device, dtype: Dtype
) -> PaddingExperiments | None:
    """Why a backward pass cannot be run where the model would; None where it can."""
    where = pick_device(checkpoint.settings.device if device == "auto" else device)
    if refused := too_large(checkpoint, batch, where, models=1):
        return PaddingExperiments(refused, "a backward pass would need too much memory")
    if not plan_for(checkpoint, task, device=device, dtype=dtype).whole:
        return PaddingExperiments(words.NOT_IN_ONE_PLACE.format(name=checkpoint.name), "the model is not on one device")
    return None


def _unmeasurable(checkpoint: StagedCheckpoint, loaded: Loaded, task: str) -> PaddingExperiments | None:
    """Why this model's gradients cannot be measured; None where they can."""
    if task == "seq2seq_lm" and not reads_input_matrix(loaded.model):
        return PaddingExperiments(words.NOT_SHARED.format(name=checkpoint.name), "no pass reads the shared matrix")
    return None


def _task(checkpoint: StagedCheckpoint) -> str | None:
    if checkpoint.config.is_encoder_decoder:
        return "seq2seq_lm"
    return next(iter(checkpoint.language_heads), None)


def _ask(
    checkpoint: StagedCheckpoint, batch: PaddedBatch, task: str, ordinary: torch.Tensor
) -> tuple[PaddedBatch | None, torch.Tensor | None, str]:
    """What the model reads and is asked for, in words too; or why it cannot be asked."""
    if task == "causal_lm":
        return batch, label_next(batch), words.ASKED[task]
    if task == "seq2seq_lm":
        read, labels = write_again(batch, start=decoder_start(checkpoint))
        return read, labels, words.ASKED[task]
    mask_token, mask_id = checkpoint.require_tokens().role("mask")
    if mask_id is None:
        return None, None, words.NO_MASK.format(name=checkpoint.name)
    read, labels = mask_some(batch, ordinary, mask_id=mask_id)
    return read, labels, words.ASKED[task].format(mask=mask_token)


def _differentiate(
    checkpoint: StagedCheckpoint, work: Work, loaded: Loaded, *, row: int, vocabulary: pd.DataFrame, progress: Progress
) -> PaddingExperiments:
    """Run every experiment, or say that the model's own loss does not run."""
    try:
        with memory_guard(loaded):
            return _run(checkpoint, work, loaded, row=row, vocabulary=vocabulary, progress=progress)
    except MODEL_ERRORS:  # GIT's loss counts the positions of an image, too
        note = words.DOES_NOT_RUN.format(model=type(loaded.model).__name__)
        return PaddingExperiments(note, "the model's own loss does not run on text alone")


def _run(
    checkpoint: StagedCheckpoint, work: Work, loaded: Loaded, *, row: int, vocabulary: pd.DataFrame, progress: Progress
) -> PaddingExperiments:
    tied = is_tied(loaded.model)
    blocked = any(module.padding_idx == row for module in look_ups(loaded.model))
    passes = 3 + 2 * blocked
    there = vocabulary.copy()  # norms of the model that is measured: some classes set the row to zero after loading
    there.loc[row, "norm"] = norms(input_embedding(loaded.model).detach()[[row]].float().cpu())[0]
    table = _Table(row, _compared(work, vocabulary, row), there, tied)
    only, rows = [row], [row, *table.compared.values()]
    progress(0, "Backward pass: one path at a time")
    paths = split(work, rows)
    progress(1 / passes, "Backward pass: both paths together")
    together = total(work, rows)
    table.add(AS_IT_IS, paths, together)
    if tied:
        alone = replace(paths, into_output=torch.zeros_like(paths.into_output))
        table.add(UNTIED, alone, None)
    if blocked:
        progress(2 / passes, "Backward pass: without padding_idx")
        table.add(LIFTED, split(work, only, padding_idx=False), None)
        progress(3 / passes, "Backward pass: without attention mask")
        table.add(UNMASKED, split(work, only, padding_idx=False, masked=False), None)
    progress((passes - 1) / passes, "A fresh model of the same size, as a control")
    refused = too_large(checkpoint, work.batch, work.device, models=2)
    if not refused:
        _add_fresh(table, work, loaded)
    into_look_up, into_output = norms(paths.into_look_up)[0], norms(paths.into_output)[0]
    both = paths.into_look_up + paths.into_output if tied else paths.into_look_up
    gradient = PaddingGradient(
        task="",
        loss=paths.loss,
        predicted=0,
        padding=work.batch.padding,
        probability=float(paths.probability[0]),
        tied=tied,
        input_path=into_look_up,
        output_path=into_output if tied else 0.0,
        total=norms(together)[0],
        split_error=float((both - together).abs().max()),
        output_matrix=None if tied else into_output,
        rows=len(vocabulary),
        rows_input=paths.rows_look_up,
        rows_output=paths.rows_output,
    )
    left_out = (words.NO_CONTROL.format(why=refused),) if refused else ()
    experiments = pd.DataFrame(table.lines, columns=COLUMNS)
    return PaddingExperiments("", "", gradient, experiments, warnings=left_out)


def _add_fresh(table: _Table, work: Work, loaded: Loaded) -> None:
    model = fresh_model(loaded)
    paths = split(replace(work, model=model), [table.row])
    table.tied = is_tied(model)
    weight = input_embedding(model).detach()[[table.row]]
    table.add(FRESH, paths, None, row_norm=norms(weight.float().cpu())[0])


def _compared(work: Work, vocabulary: pd.DataFrame, row: int) -> dict[str, int]:
    """An ordinary token that occurs nowhere in the text, of median norm, and one that occurs."""
    read, labels = work.batch.ids.flatten().tolist(), work.labels.flatten().tolist()
    ordinary = vocabulary.loc[vocabulary["kind"].isin(ORDINARY) & np.isfinite(vocabulary["norm"])]
    absent = ordinary.loc[~ordinary["token_id"].isin([row, *read, *labels])]
    chosen: dict[str, int] = {}
    if len(absent):
        apart = (absent["norm"] - absent["norm"].median()).abs().to_numpy()
        chosen["not in the text"] = int(absent["token_id"].iloc[int(apart.argmin())])
    allowed = set(ordinary["token_id"]) - {row}
    present = next((token_id for token_id in read if token_id in allowed), None)
    return chosen if present is None else {**chosen, "in the text": present}


@dataclass(slots=True)
class _Table:
    """The experiments, a line each."""

    row: int
    compared: dict[str, int]  # role -> row, only of the checkpoint as it is
    vocabulary: pd.DataFrame
    tied: bool  # of the model that is being measured
    lines: list[tuple[object, ...]] = field(default_factory=list)

    def add(
        self, experiment: str, paths: Paths, together: torch.Tensor | None, *, row_norm: float | None = None
    ) -> None:
        """Add an experiment.

        Args:
            paths: Gradients by path, of `row` first.
            together: What an ordinary pass gave, for the compared rows too; None: the sum of both
                paths, for `row` alone.
            row_norm: Of the row, where it is another model's.
        """
        # Not tied, the output matrix is another one, perhaps of another width.
        into_output = paths.into_output if self.tied else torch.zeros_like(paths.into_look_up)
        roles = {ROLE: self.row}
        if together is None:
            together = paths.into_look_up + into_output
        else:
            roles |= self.compared
        columns = (norms(paths.into_look_up), norms(into_output), norms(together))
        for (role, row), *measured in zip(roles.items(), *columns, strict=False):
            token, norm = self.vocabulary.loc[row, ["token", "norm"]]
            norm = float(norm) if row_norm is None else row_norm
            self.lines.append((experiment, role, token, row, norm, *measured))
