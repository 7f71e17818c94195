"""Why is the padding vector not zero? Its row, its gradient by path, and what it does to means."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import torch

from inspector.analyses.padding import words_measuring as measuring
from inspector.analyses.padding.compute_averaging import average
from inspector.analyses.padding.compute_batch import PaddedBatch, encode_batch
from inspector.analyses.padding.compute_experiments import COLUMNS, PaddingExperiments, measure
from inspector.analyses.padding.compute_gradient import output_matrix
from inspector.analyses.padding.request import PaddingRequest
from inspector.analyses.padding.result import Padding, PaddingRow
from inspector.analyses.padding.words import Named, agreement, loading, no_row, verdict
from inspector.errors import CheckpointError, InspectorError, NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.families import declares_tie
from inspector.models.loading import load
from inspector.models.running import Loaded
from inspector.models.vocabulary.labels import measured_rows, nearest_rows, not_finite_warning
from inspector.models.vocabulary.rows import RowFacts, read_facts
from inspector.progress import Progress, Show
from inspector.request import answers
from inspector.store.readers.levels import read_setting

NEIGHBORS = 10
NEAREST = ["token", "token_id", "cosine", "kind"]
PLACES = ["place", "rows", "distance", "cosine"]
AVERAGING = ["sentence", "tokens", "padding", "cosine", "difference", "relative", "padding_share", "padding_norm"]


@answers(PaddingRequest)
def padding(
    checkpoint: StagedCheckpoint, request: PaddingRequest, *, progress: Progress, show: Show[Padding] | None = None
) -> Padding:
    """Describe the padding vector and prove on this checkpoint what moves it.

    Args:
        checkpoint: With an embedding matrix; a language-model head is needed for the gradient.
        request: Sentences that are padded together, and where the model runs; dtype "auto" is
            float32.
        progress: Told what is being done.
        show: Takes what the rows alone tell, before a model runs.

    Raises:
        NotInCheckpointError: If there is no embedding matrix.
        RequestError: If a sentence does not fit the model.
    """
    matrix, facts, vocabulary = measured_rows(checkpoint, progress)
    named = _name(checkpoint)
    index, stands_in = _find_row(checkpoint, named, rows=len(matrix))
    row = None if index is None else describe(checkpoint, matrix, facts, vocabulary, index)
    reason = _reason(checkpoint, request.text, index)
    answer = partial(_answer, checkpoint, named, stands_in=stands_in, vocabulary=vocabulary)
    measured, averaging, averaging_note = PaddingExperiments(reason), None, reason
    if request.text is not None and index is not None and not reason:
        device, dtype = request.device, request.dtype
        batch = encode_batch(checkpoint, request.sentences, pad_id=index)
        if show:
            show(answer(measured, row=row, averaging=None, averaging_note=""))
        try:
            measured = measure(
                checkpoint, batch, row=index, vocabulary=vocabulary, progress=progress, device=device, dtype=dtype
            )
        except (CheckpointError, NotInCheckpointError) as error:
            measured = PaddingExperiments(str(error), "the model cannot be built with its head")
        progress(None, "Averaging hidden states")
        averaging, averaging_note = _average(checkpoint, batch, measured.loaded, request, progress)
    if row is not None:
        row = replace(row, gradient=measured.gradient, experiments=measured.experiments)
    return answer(measured, row=row, averaging=averaging, averaging_note=averaging_note)


def describe(
    checkpoint: StagedCheckpoint, matrix: torch.Tensor, facts: RowFacts, vocabulary: pd.DataFrame, index: int
) -> PaddingRow:
    """Describe one row of a matrix and where it lies among the others.

    Args:
        matrix: (vocab, d_model).
    """
    has_direction = bool(facts.finite[index] and not facts.zero[index])
    nearest = nearest_rows(
        matrix, vocabulary, index if has_direction else None, k=NEIGHBORS, metric="cosine", facts=facts
    )
    nearest = nearest.rename(columns={"similarity": "cosine"})
    nearest["kind"] = vocabulary["kind"].iloc[nearest["token_id"]].to_numpy()
    others = facts.norms[facts.finite]
    return PaddingRow(
        token=str(vocabulary["token"].iloc[index]),
        token_id=index,
        norm=float(facts.norms[index]),
        percentile=100 * float((others < facts.norms[index]).float().mean()),
        is_zero=bool(facts.zero[index]),
        nearest=nearest,
        places=_places(checkpoint, matrix, facts, vocabulary, index),
    )


def _places(
    checkpoint: StagedCheckpoint, matrix: torch.Tensor, facts: RowFacts, vocabulary: pd.DataFrame, index: int
) -> pd.DataFrame:
    """How far the row lies from the mean, from [UNK] and from rows that stand for nothing."""
    unused = facts.finite & torch.tensor(vocabulary["kind"].isin(["unused", "no token"]).tolist())
    unused[index] = False
    row, means = matrix[index].float(), {"mean of all rows": (int(facts.finite.sum()), facts.mean)}
    if unused.any():
        means["mean of the unused rows"] = (int(unused.sum()), matrix[unused].float().mean(dim=0))
    unknown = checkpoint.tokens.role("unk")[1] if checkpoint.tokens else None
    if unknown is not None and unknown < len(matrix) and unknown != index:
        means[str(vocabulary["token"].iloc[unknown])] = (1, matrix[unknown].float())
    found = []
    for place, (rows, mean) in means.items():
        distance, lengths = (row - mean).norm(), row.norm() * mean.norm()
        cosine = row @ mean / lengths  # 0 / 0 is NaN: no direction
        found.append((place, rows, float(distance), float(cosine)))
    return pd.DataFrame(found, columns=PLACES)


def _name(checkpoint: StagedCheckpoint) -> Named:
    """Ask tokenizer, config.json and the embedding module which row is padding."""
    token, token_id = checkpoint.tokens.role("pad") if checkpoint.tokens else (None, None)
    known, padding_idx, config_id = True, None, None
    try:
        config_id = _id_or_none(read_setting(checkpoint.config, "pad_token_id").value)
        padding_idx = _padding_idx(checkpoint)
    except InspectorError:
        known = False
    return Named(token, token_id, config_id, padding_idx, known, checkpoint.tokens is not None)


def _padding_idx(checkpoint: StagedCheckpoint) -> int | None:
    """The padding_idx of the embedding module, by building the base model without memory."""
    from inspector.models.build import meta_model, task_class

    model_class = task_class(checkpoint.config, "base")
    try:
        module = meta_model(model_class, checkpoint.config).get_input_embeddings()
    except Exception as error:
        raise CheckpointError(
            f"No model can be built from the config.json of {checkpoint.name}: compare it with the original file."
        ) from error
    return getattr(module, "padding_idx", None)


def _reason(checkpoint: StagedCheckpoint, text: str | None, index: int | None) -> str:
    """Why nothing can be run; "" where it can."""
    if index is None:
        return measuring.NO_ROW
    if checkpoint.manifest.config is None:
        return measuring.NO_CONFIG.format(name=checkpoint.name)
    if checkpoint.tokens is None:
        return measuring.NO_TOKENIZER
    return "" if text is not None else measuring.NO_TEXT


def _find_row(checkpoint: StagedCheckpoint, named: Named, *, rows: int) -> tuple[int | None, bool]:
    """The row to look at, and whether it only stands in for padding."""
    if named.row is not None:
        return (named.row, False) if 0 <= named.row < rows else (None, False)
    candidates = [checkpoint.tokens.role("eos")[1]] if checkpoint.tokens else []
    if named.known:
        candidates.append(_id_or_none(read_setting(checkpoint.config, "eos_token_id").value))
    usable = [index for index in candidates if index is not None and index < rows]
    return (usable[0], True) if usable and checkpoint.tokens else (None, False)


def _id_or_none(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _average(
    checkpoint: StagedCheckpoint, batch: PaddedBatch, loaded: Loaded | None, request: PaddingRequest, progress: Progress
) -> tuple[pd.DataFrame | None, str]:
    """Average over the batch with whatever model there is, or say why there is none."""
    try:
        loaded = loaded or load(checkpoint, "base", device=request.device, dtype=request.dtype, progress=progress)
    except (CheckpointError, NotInCheckpointError) as error:
        return None, str(error)
    reader = "encoder" if loaded.model.config.is_encoder_decoder else "model"
    said = measuring.averaged(len(batch.sentences), batch.ids.shape[1], reader)
    return average(loaded, batch), " ".join([said, *loaded.notes])


def _answer(
    checkpoint: StagedCheckpoint,
    named: Named,
    measured: PaddingExperiments,
    *,
    row: PaddingRow | None,
    stands_in: bool,
    vocabulary: pd.DataFrame,
    averaging: pd.DataFrame | None,
    averaging_note: str,
) -> Padding:
    pad = None if stands_in else row
    norms = vocabulary["norm"].to_numpy()
    finite = np.isfinite(norms)
    loaded = measured.loaded
    zeroed_by = _zeroed_by(checkpoint, pad)
    if pad is None:
        said = no_row(named, rows=len(vocabulary))
    else:
        said = verdict(
            pad,
            named,
            tied=measured.tied,
            declared=_declares_tie(checkpoint),
            unmeasured=measured.unmeasured,
            zeroed_by=zeroed_by,
        )
    return Padding(
        pad_token=named.token if pad is None else pad.token,
        pad_id=named.row,
        padding_idx=named.padding_idx,
        norm=pad and pad.norm,
        median_norm=float(np.median(norms[finite])) if finite.any() else math.nan,
        percentile=pad and pad.percentile,
        is_zero=pad and pad.is_zero,
        nearest=_or_empty(pad and pad.nearest, NEAREST),
        gradient=pad and pad.gradient,
        verdict=said,
        agreement=agreement(named, rows=len(vocabulary)),
        tied=measured.tied,
        gradient_note=measured.note,
        averaging_note=averaging_note,
        places=_or_empty(pad and pad.places, PLACES),
        experiments=_or_empty(measured.experiments if pad else None, COLUMNS),
        averaging=_or_empty(averaging, AVERAGING),
        output_row=_output_row(checkpoint, vocabulary, row, measured),
        stand_in=row if stands_in else None,
        warnings=(
            *not_finite_warning(vocabulary, torch.from_numpy(finite)),
            *(_other_side(checkpoint) if averaging is not None else ()),
            *measured.warnings,
        ),
        loaded_norm=0.0 if zeroed_by else pad and pad.norm,
        loading=loading(pad, zeroed_by) if pad and zeroed_by else "",
        row=row,
        device=str(loaded.device) if loaded else "",
        dtype=loaded.precision if loaded else "",
        masked_text=_lines(checkpoint, measured.batch),
    )


def _zeroed_by(checkpoint: StagedCheckpoint, row: PaddingRow | None) -> str:
    """The class that sets the row to zero after loading it; "" where it leaves it as it is."""
    if row is None or row.is_zero or row.token_id not in checkpoint.zeroed_rows:
        return ""
    return checkpoint.own_class.__name__


def _other_side(checkpoint: StagedCheckpoint) -> tuple[str, ...]:
    """That the batch is padded on the other side than the tokenizer pads on."""
    left = checkpoint.tokens is not None and checkpoint.tokens.padding_side == "left"
    return (measuring.ON_THE_RIGHT,) if left else ()


def _or_empty(frame: pd.DataFrame | None, columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(columns=columns) if frame is None else frame


def _lines(checkpoint: StagedCheckpoint, batch: PaddedBatch | None) -> tuple[str, ...]:
    """The batch as the model read it, a line a sentence."""
    if batch is None:
        return ()
    visible = checkpoint.require_tokens().visible
    return tuple(" ".join(visible(index) for index in line) for line in batch.ids.tolist())


def _declares_tie(checkpoint: StagedCheckpoint) -> bool:
    config = checkpoint.manifest.config
    return config is not None and declares_tie(config, checkpoint.family) and _writes(checkpoint)


def _writes(checkpoint: StagedCheckpoint) -> bool:
    """Whether this kind of model has a class with an output matrix, as CLIP's text part has not."""
    from inspector.models.build import LANGUAGE_TASKS, find_class

    try:
        return any(find_class(checkpoint.config, task) for task in LANGUAGE_TASKS)
    except InspectorError:
        return True


def _output_row(
    checkpoint: StagedCheckpoint, vocabulary: pd.DataFrame, row: PaddingRow | None, measured: PaddingExperiments
) -> PaddingRow | None:
    """The same token's row where the output matrix is another one."""
    if measured.loaded is None or measured.tied is not False or row is None:
        return None
    weight = output_matrix(measured.loaded.model).detach().cpu()
    if len(weight) != len(vocabulary):
        return None
    return describe(checkpoint, weight, read_facts(weight), vocabulary, row.token_id)
