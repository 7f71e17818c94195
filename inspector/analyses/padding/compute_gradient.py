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

from inspector.analyses.padding.compute_batch import IGNORED, Batch
from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import Checkpoint
from inspector.models.execution import input_embedding
from inspector.models.running import Loaded

MEMORY_SHARE = 0.8  # of what a worker may use: the rest is for what is not counted below
STATES = 24  # tensors of the hidden size that a layer keeps for its backward pass, about
SCORES = 4  # tensors of the vocabulary's size that a softmax and its backward pass keep
FLOAT = 4  # bytes


@dataclass(frozen=True, slots=True)
class Work:
    """A model and the loss that is differentiated: evaluation mode, no dropout."""

    model: PreTrainedModel
    device: torch.device
    batch: Batch
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
    layer: Any = model.get_output_embeddings()
    if layer is None or layer is model.get_input_embeddings():
        raise NotInCheckpointError(
            f"The output layer of a {type(model).__name__} has no matrix of its own name, so its "
            "two paths cannot be taken apart."
        )
    return layer.weight


def is_tied(model: PreTrainedModel) -> bool:
    """Whether the output layer's matrix is the embedding matrix itself."""
    return output_matrix(model) is input_embedding(model)


def split(work: Work, rows: Sequence[int], *, padding_idx: bool = True, masked: bool = True) -> Paths:
    """Differentiate the loss with the look-up and the output layer untied.

    Args:
        work: Model and loss.
        rows: Of the embedding matrix.
        padding_idx: False lifts it for this pass.
        masked: False leaves the attention mask out.

    Raises:
        NotInCheckpointError: If the output layer has no matrix of its own name.
    """
    look_up, output = input_embedding(work.model), output_matrix(work.model)
    inside, outside = (matrix.detach().requires_grad_() for matrix in (look_up, output))
    names = _names(work.model, work.model.get_output_embeddings())
    replaced = {
        name: outside if name in names else inside
        for name, parameter in work.model.named_parameters(remove_duplicate=False)
        if parameter is look_up or name in names
    }
    with _lifted(look_ups(work.model), lifted=not padding_idx):
        output = _run(work, replaced, masked=masked)
        into_look_up, into_output = torch.autograd.grad(output.loss, (inside, outside), materialize_grads=True)
    return Paths(
        loss=float(output.loss.detach()),
        into_look_up=into_look_up[list(rows)].float().cpu(),
        into_output=into_output[list(rows)].float().cpu(),
        rows_look_up=int(into_look_up.ne(0).any(dim=1).sum()),
        rows_output=int(into_output.ne(0).any(dim=1).sum()),
        probability=_probability(work, output.logits.detach(), rows),
    )


def total(work: Work, rows: Sequence[int]) -> torch.Tensor:
    """Differentiate the loss of the model as it is, tied or not.

    Returns:
        The gradient on rows of the embedding matrix, (rows, d_model) in float32 on the CPU.
    """
    weight = input_embedding(work.model)
    leaf = weight.detach().requires_grad_()
    replaced = {
        name: leaf for name, parameter in work.model.named_parameters(remove_duplicate=False) if parameter is weight
    }
    (gradient,) = torch.autograd.grad(_run(work, replaced, masked=True).loss, (leaf,))
    return gradient[list(rows)].float().cpu()


def fresh_model(loaded: Loaded, *, seed: int = 0) -> PreTrainedModel:
    """Build a random model of the same class and config, as one is before any training.

    A control: its numbers say nothing about the checkpoint.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = type(loaded.model)(copy.deepcopy(loaded.model.config))
    nn.Module.to(model, loaded.device, loaded.dtype)
    return model.eval()


def too_large(checkpoint: Checkpoint, batch: Batch, device: torch.device, *, models: int) -> str | None:
    """Say that a backward pass would not fit, before anything is loaded for it.

    Args:
        checkpoint: The model's sizes.
        batch: What it reads.
        device: Where.
        models: How many of that size there are at once.

    Returns:
        One sentence, or None where it fits.
    """
    config = checkpoint.config
    layers, hidden, heads = (
        getattr(config, name, None) or 1 for name in ("num_hidden_layers", "hidden_size", "num_attention_heads")
    )
    vocab, columns = checkpoint.embedding.shape
    positions, width = batch.ids.numel(), batch.ids.shape[1]
    parameters = sum(math.prod(tensor.shape) for tensor in checkpoint.manifest.tensors)
    states = layers * positions * (STATES * hidden + SCORES * heads * width)
    numbers = models * parameters + 2 * vocab * columns + SCORES * positions * vocab + states
    allowed = checkpoint.settings.worker_nbytes
    if device.type == "cuda":
        allowed = torch.cuda.get_device_properties(device).total_memory
    if FLOAT * numbers <= MEMORY_SHARE * allowed:
        return None
    return (
        f"A backward pass through {checkpoint.name} needs about {FLOAT * numbers / 1e9:,.1f} GB "
        f"here, and {MEMORY_SHARE * allowed / 1e9:,.1f} GB may be used: give fewer or shorter "
        "sentences, or set INSPECTOR_WORKER_MB higher."
    )


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
