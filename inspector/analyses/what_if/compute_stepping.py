"""Train a language model for a few steps on one text, in evaluation mode: no dropout, no chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.models.auto import modeling_auto

from inspector.analyses.what_if import words
from inspector.errors import CheckpointError, NotInCheckpointError, RequestError
from inspector.models.build import MODEL_ERRORS
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.inputs import IGNORED
from inspector.models.vocabulary.labels import ORDINARY
from inspector.store.readers.levels import read_setting

EVERY = 7  # one in seven ordinary tokens is masked: about BERT's 15 %


@dataclass(frozen=True, slots=True)
class Lesson:
    """A text with labels, (1, positions) each."""

    inputs: dict[str, torch.Tensor]
    labels: torch.Tensor
    counted: int  # positions that the loss counts


@dataclass(frozen=True, slots=True)
class StepLosses:
    """Losses of some steps; `failed` says in words why there are none."""

    first: float
    last: float
    failed: str = ""


def prepare(checkpoint: StagedCheckpoint, model: PreTrainedModel, text: str) -> Lesson | str:
    """Turn a text into what the model's own loss takes, or say why nothing can be trained.

    A masked-LM model predicts every seventh ordinary token, masked; a causal one each next token;
    an encoder–decoder model gives the text back.

    Raises:
        RequestError: If the text is empty or too long.
    """
    if model.get_output_embeddings() is None:
        return words.NO_LOSS.format(model=type(model).__name__)
    try:
        encoded = checkpoint.require_tokens().encode(text)
        checkpoint.check_ids(encoded.ids, encoded.type_ids)
        if model.config.is_encoder_decoder:
            checkpoint.check_ids(encoded.ids, decoder=True)
    except (NotInCheckpointError, CheckpointError) as error:
        return str(error)
    ids = torch.tensor([encoded.ids])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if (read_setting(model.config, "type_vocab_size").value or 0) > 1:
        inputs["token_type_ids"] = torch.tensor([encoded.type_ids])
    mask_id = checkpoint.require_tokens().role("mask")[1]
    labels = ids.clone()
    if predicts_masks(model):
        if mask_id is None:
            return words.NO_MASK
        chosen = _chosen(checkpoint, encoded.ids)
        labels = torch.full_like(ids, IGNORED)
        labels[0, chosen] = ids[0, chosen]
        inputs["input_ids"] = ids.index_fill(1, torch.tensor(chosen, dtype=torch.long), mask_id)
    shifted = not predicts_masks(model) and not model.config.is_encoder_decoder
    counted = int((labels[:, 1:] if shifted else labels).ne(IGNORED).sum())
    if not counted:
        raise RequestError("The text has no token to predict: type a longer one.")
    return Lesson(inputs, labels, counted)


def predicts_masks(model: PreTrainedModel) -> bool:
    """Whether the model learns from masked tokens."""
    config = model.config
    masked = type(config) in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING
    return masked and not config.is_encoder_decoder and not getattr(config, "is_decoder", False)


def train(model: PreTrainedModel, lesson: Lesson, *, steps: int, learning_rate: float, optimizer: str) -> StepLosses:
    """Train every parameter in place, and measure the loss before and after.

    Args:
        model: In evaluation mode, which leaves dropout out, so that numbers repeat.
        steps: Optimizer steps, at least 1.
        learning_rate: Constant.
        optimizer: "adamw" (Loshchilov & Hutter 2019; weight decay 0) or "sgd" (no momentum).

    Returns:
        The losses; where the model cannot run or holds no finite number, `failed` says so, and
        its parameters are not to be used.
    """
    model.requires_grad_(True)
    stepper: torch.optim.Optimizer
    if optimizer == "sgd":
        stepper = torch.optim.SGD(model.parameters(), lr=learning_rate)
    else:
        stepper = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.0, foreach=False)
    first = math.nan
    try:
        for step in range(steps):
            loss = loss_of(model, lesson)
            first = loss.item() if step == 0 else first
            if not math.isfinite(loss.item()):
                return StepLosses(first, math.nan, words.NOT_FINITE)
            stepper.zero_grad(set_to_none=True)
            loss.backward()
            stepper.step()
        stepper.zero_grad(set_to_none=True)
        with torch.no_grad():
            last = loss_of(model, lesson).item()
    except MODEL_ERRORS as error:
        return StepLosses(first, math.nan, words.cannot_run(error))
    if not math.isfinite(last):
        half = optimizer == "adamw" and model.dtype == torch.float16
        return StepLosses(first, last, words.NOT_FINITE_AFTER.format(why=words.EPSILON if half else ""))
    return StepLosses(first, last)


def loss_of(model: PreTrainedModel, lesson: Lesson) -> torch.Tensor:
    """The model's own loss; of a pretraining model with two heads, that of the masked LM."""
    output: Any = model(**lesson.inputs, labels=lesson.labels, use_cache=False)
    if output.loss is not None:
        return output.loss
    logits = output.prediction_logits
    return nn.functional.cross_entropy(logits.flatten(0, 1), lesson.labels.flatten())


def _chosen(checkpoint: StagedCheckpoint, ids: tuple[int, ...]) -> list[int]:
    kinds = checkpoint.require_tokens().vocabulary(max(ids) + 1)["kind"]
    ordinary = [place for place, index in enumerate(ids) if kinds[index] in ORDINARY]
    return ordinary[::EVERY]
