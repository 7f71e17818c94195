"""Take the gradient on single embedding rows apart: through the look-up, and through the softmax.

The two paths are told apart by untying: the look-up and the output layer get two leaf tensors with
the same values, and automatic differentiation gives each its own gradient. By the chain rule their
sum is the gradient of the tied model, which is measured too, by a pass of its own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from transformers import PreTrainedModel

from inspector.analyses.padding import words_measuring as words
from inspector.analyses.padding.compute_batch import PaddedBatch
from inspector.analyses.padding.compute_taps import (
    is_plain,
    keep_sparse,
    moved,
    rows_looked_up,
    rows_multiplied,
    tapped,
)
from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.inputs import IGNORED
from inspector.models.naming import input_embedding
from inspector.models.running import MEMORY_SHARE, Loaded
from inspector.store.readers.levels import read_setting

STATES = 24  # tensors of the hidden size that a layer keeps for its backward pass, about
SCORES = 4  # tensors of the vocabulary's size that a softmax and its backward pass keep


@dataclass(frozen=True, slots=True)
class Work:
    """A model and the loss that is differentiated: evaluation mode, no dropout."""

    model: PreTrainedModel
    device: torch.device
    batch: PaddedBatch
    labels: torch.Tensor  # (sentences, positions)
    shifted: bool  # True: a position predicts the next one's label


@dataclass(frozen=True, slots=True)
class Paths:
    """Gradients on some rows by path, each (rows, d_model) in float32 on the CPU."""

    loss: float
    into_look_up: torch.Tensor
    into_output: torch.Tensor  # on the output matrix, be it the embedding matrix or another one
    rows_look_up: int  # rows of the whole matrix with any gradient
    rows_output: int
    probability: torch.Tensor  # of each row's token at the predicted positions, mean, (rows,)


def predicting(work: Work) -> torch.Tensor:
    """Tell which positions predict something, (sentences, positions) of bool."""
    there = work.labels.ne(IGNORED)
    if work.shifted:
        there = torch.cat([there[:, 1:], torch.zeros_like(there[:, :1])], dim=1)
    return there


def reads_input_matrix(model: PreTrainedModel) -> bool:
    """Whether the encoder looks tokens up in it: untied, BART's has a matrix of its own."""
    weight = input_embedding(model)
    encoder: Any = model.get_encoder()
    return any(isinstance(module, nn.Embedding) and module.weight is weight for module in encoder.modules())


def look_ups(model: PreTrainedModel) -> list[nn.Embedding]:
    """The modules that look tokens up: the one, or those of an encoder and a decoder."""
    weight = input_embedding(model)
    return [module for module in model.modules() if isinstance(module, nn.Embedding) and module.weight is weight]


def output_matrix(model: PreTrainedModel) -> torch.Tensor:
    """The parameter of the output layer, (vocab, d_model).

    Raises:
        NotInCheckpointError: If there is none, or not one vector for each token.
    """
    return _output_layer(model).weight


def _output_layer(model: PreTrainedModel) -> Any:
    layer: Any = model.get_output_embeddings()
    if layer is None or layer is model.get_input_embeddings():
        raise NotInCheckpointError(
            f"The output layer of a {type(model).__name__} has no matrix with its own name, so its two paths cannot "
            "be separated."
        )
    return layer


def is_tied(model: PreTrainedModel) -> bool:
    """Whether the output layer's matrix is the embedding matrix itself."""
    return output_matrix(model) is input_embedding(model)


def split(work: Work, rows: Sequence[int], *, padding_idx: bool = True, masked: bool = True) -> Paths:
    """Differentiate the loss with the look-up and the output layer untied.

    Args:
        padding_idx: False lifts it for this pass.
        masked: False leaves the attention mask out.

    Raises:
        NotInCheckpointError: If the output layer has no matrix of its own name.
    """
    model = work.model
    look_up, output_layer = input_embedding(model), _output_layer(model)
    plain = is_plain(output_layer)
    inside, outside = look_up.detach().requires_grad_(), output_layer.weight.detach().requires_grad_(not plain)
    names = _names(model, output_layer)
    replaced = {
        name: outside if name in names else inside
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if parameter is look_up or name in names
    }
    modules = look_ups(model)
    with _lifted(modules, lifted=not padding_idx), keep_sparse(modules), tapped(output_layer) as taps:
        output = _run(work, replaced, masked=masked)
        ends = [scores for _, scores in taps] if plain else [outside]
        found, *pushed = torch.autograd.grad(output.loss, (inside, *ends), allow_unused=True)
    into_look_up, rows_look_up = rows_looked_up(found, rows, look_up.shape[1])
    into_output, rows_output = (
        rows_multiplied(taps, pushed, rows) if plain else rows_looked_up(pushed[0], rows, outside.shape[1])
    )
    return Paths(
        loss=float(output.loss.detach()),
        into_look_up=into_look_up,
        into_output=into_output,
        rows_look_up=rows_look_up,
        rows_output=rows_output,
        probability=_probability(work, output.logits.detach(), rows),
    )


def total(work: Work, rows: Sequence[int]) -> torch.Tensor:
    """Differentiate the loss of the model as it is, tied or not.

    Returns:
        The gradient on rows of the embedding matrix, (rows, d_model) in float32 on the CPU.
    """
    model, modules = work.model, look_ups(work.model)
    weight, layer = input_embedding(model), _output_layer(model)
    once = list(dict.fromkeys(rows))
    names = {name for name, each in model.named_parameters(remove_duplicate=False) if each is weight}
    used = set().union(*(_names(model, module) for module in (*modules, layer)))
    if names <= used and (is_plain(layer) or not is_tied(model)):
        leaf = torch.zeros(len(once), weight.shape[1], dtype=weight.dtype, device=weight.device, requires_grad=True)
        with moved(modules, layer if is_tied(model) else None, once, leaf):
            (found,) = torch.autograd.grad(_run(work, {}, masked=True).loss, (leaf,))
    else:  # the matrix is used in a way of the model's own
        leaf = weight.detach().requires_grad_()
        (whole,) = torch.autograd.grad(_run(work, dict.fromkeys(names, leaf), masked=True).loss, (leaf,))
        found = whole[once]
    return found[[once.index(row) for row in rows]].float().cpu()


def fresh_model(loaded: Loaded) -> PreTrainedModel:
    """Build a random model of the same class and config, as one is before any training.

    A control: its numbers say nothing about the checkpoint.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = type(loaded.model)(copy.deepcopy(loaded.model.config))
    nn.Module.to(model, loaded.device, loaded.dtype)
    return model.eval()


def too_large(checkpoint: StagedCheckpoint, batch: PaddedBatch, device: torch.device, *, models: int) -> str | None:
    """Say that a backward pass would not fit, before anything is loaded for it.

    Args:
        models: How many of that size there are at once.

    Returns:
        One sentence, or None where it fits.
    """
    config = checkpoint.config
    layers, hidden, heads = (
        read_setting(config, name).value or 1 for name in ("num_hidden_layers", "hidden_size", "num_attention_heads")
    )
    vocab = checkpoint.embedding.shape[0]
    positions, width = batch.ids.numel(), batch.ids.shape[1]
    parameters = sum(math.prod(tensor.shape) for tensor in checkpoint.manifest.tensors)
    states = layers * positions * (STATES * hidden + SCORES * heads * width)
    numbers = models * parameters + SCORES * positions * vocab + states
    nbytes = torch.float32.itemsize * numbers
    allowed = checkpoint.settings.worker_nbytes
    if device.type == "cuda":
        allowed = torch.cuda.get_device_properties(device).total_memory
    if nbytes <= MEMORY_SHARE * allowed:
        return None
    return words.TOO_LARGE.format(name=checkpoint.name, needed=nbytes / 1e9, allowed=MEMORY_SHARE * allowed / 1e9)


def norms(gradients: torch.Tensor) -> list[float]:
    """Euclidean norm of each row's gradient; exactly 0 only where every number is."""
    return torch.linalg.vector_norm(gradients.double(), dim=1).tolist()


def _names(model: PreTrainedModel, module: nn.Module | None) -> set[str]:
    """Every name of a module's weight that goes through the module itself."""
    modules = model.named_modules(remove_duplicate=False)
    return {f"{name}.weight" for name, each in modules if each is module}


def _run(work: Work, replaced: dict[str, torch.Tensor], *, masked: bool) -> Any:
    """The model's own answer and loss, some parameters replaced; the others take no gradient."""
    parameters = {
        name: replaced.get(name, parameter.detach())
        for name, parameter in work.model.named_parameters(remove_duplicate=False)
    }
    inputs = work.batch.inputs(work.model, work.device, masked=masked)
    return functional_call(
        work.model,
        parameters,
        kwargs={**inputs, "labels": work.labels.to(work.device), "use_cache": False},
        tie_weights=False,
    )


def _probability(work: Work, logits: torch.Tensor, rows: Sequence[int]) -> torch.Tensor:
    there = predicting(work).to(logits.device)
    return logits[there].float().softmax(dim=1)[:, list(rows)].mean(dim=0).cpu()


@contextmanager
def _lifted(modules: list[nn.Embedding], *, lifted: bool) -> Iterator[None]:
    """Take padding_idx away for one pass."""
    kept = [module.padding_idx for module in modules]
    try:
        if lifted:
            for module in modules:
                module.padding_idx = None
        yield
    finally:
        for module, padding_idx in zip(modules, kept, strict=True):
            module.padding_idx = padding_idx
