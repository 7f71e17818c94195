"""Say what AdamW would decay in this model, what training takes, and how the rates would run."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import torch
from transformers import PreTrainedModel

from inspector.analyses.training import words
from inspector.analyses.training.compute_groups import (
    NAMES,
    Sorted,
    gather,
    memory_frame,
    parameter_frame,
    reason_frame,
    shared,
    sort_parameters,
)
from inspector.analyses.training.compute_schedules import learning_rates, shrinkage
from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import DECAYED, FROZEN, NOT_DECAYED, DecayExample, TrainingPlan
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.memory import shared_names
from inspector.models.naming import embedding_matrix
from inspector.models.weightless.outline import build_outline
from inspector.progress import Progress
from inspector.request import answers


@dataclass(frozen=True, slots=True)
class Reads:
    """Numbers that the example reads."""

    most: int = 1 << 26
    at_once: int = 1 << 20


USUAL = Reads()


@answers(TrainingRequest)
def training(
    checkpoint: StagedCheckpoint, request: TrainingRequest, *, progress: Progress, reads: Reads = USUAL
) -> TrainingPlan:
    """Say how AdamW would train the class that config.json names; nothing is trained.

    It follows from names and shapes; only the example reads numbers, of one matrix, and is left out while
    they are still on their way.

    AdamW takes the decay out of the gradient: before each update, w becomes w - rate × decay × w
    (Loshchilov & Hutter, Decoupled Weight Decay Regularization, 2019).

    Args:
        reads: How much of the matrix the example reads.

    Raises:
        RequestError: If a number is out of its range.
        CheckpointError: If the model cannot be built.
        NotInCheckpointError: If there is no config.json.
    """
    learning_rate, weight_decay = request.learning_rate, request.weight_decay
    warmup_steps, steps = request.warmup_steps, request.steps
    progress(None, "Building the model")
    model_class = checkpoint.own_class
    model, missing = build_outline(checkpoint, model_class)
    frozen = _built_frozen(model_class, checkpoint)
    if any(each.requires_grad for name, each in model.named_parameters() if name in frozen):
        model.initialize_weights()  # as from_pretrained ends: a class may freeze its parameters anew there
    parameters = sort_parameters(model, missing)
    rates = learning_rates(request, progress)
    frame = parameter_frame(parameters)
    factors = {name: shrinkage(each, weight_decay) for name, each in rates.items()}
    example = _example(checkpoint, model, parameters, factors, step=learning_rate * weight_decay, reads=reads)
    return TrainingPlan(
        model_class=model_class.__name__,
        learning_rate=learning_rate,
        warmup_steps=warmup_steps,
        steps=steps,
        weight_decay=weight_decay,
        groups=(gather(parameters, DECAYED, weight_decay), gather(parameters, NOT_DECAYED, 0.0)),
        frozen=gather(parameters, FROZEN, 0.0),
        shared=shared(parameters),
        reasons=reason_frame(frame),
        memory=memory_frame(parameters),
        example=example,
        schedules=rates,
        snippet=snippet(
            model_class.__name__,
            learning_rate=learning_rate,
            warmup_steps=warmup_steps,
            steps=steps,
            weight_decay=weight_decay,
        ),
        warnings=(
            *words.warn_of_quantized([each.scheme for each in checkpoint.quantized.values()]),
            *_warnings(checkpoint, parameters, example),
            *_thawed(model_class, frozen, parameters),
        ),
        parameters=frame,
    )


def _example(
    checkpoint: StagedCheckpoint,
    model: PreTrainedModel,
    parameters: list[Sorted],
    factors: dict[str, float],
    *,
    step: float,
    reads: Reads,
) -> DecayExample | None:
    """What decay does to the embedding matrix; None where the file does not hold its numbers."""
    matrix = embedding_matrix(model)
    found = next((each for each in parameters if each.tensor is matrix), None)
    if found is None or not found.in_file or checkpoint.manifest.is_outline:
        return None
    total, columns = found.tensor.shape
    rows = min(total, max(1, reads.most // max(1, columns)))
    norms, first = [], None
    for block in _first_numbers(checkpoint, model, found, rows * columns, reads.at_once):
        first = float(block[0]) if first is None else first
        # A float: a tensor kept of each block would keep the allocator from using the block's memory again.
        norms.append(float(torch.linalg.vector_norm(block, dtype=torch.float64)))
    norm = math.hypot(*norms)
    if first is None or not math.isfinite(norm):
        return None
    decays = found.group == DECAYED
    after = [(name, factor if decays else 1.0, norm * (factor if decays else 1.0)) for name, factor in factors.items()]
    return DecayExample(
        name=found.names[0],
        shape=tuple(found.tensor.shape),
        group=found.group,
        norm=norm,
        first=first,
        first_after=first * (1 - step) if decays else first,
        after=pd.DataFrame(after, columns=["schedule", "factor", "norm"]),
        rows=rows,
    )


def _first_numbers(
    checkpoint: StagedCheckpoint, model: PreTrainedModel, matrix: Sorted, count: int, at_once: int
) -> Iterator[torch.Tensor]:
    """A matrix' first numbers in the model's dtype, some at a time; none if the file has others."""
    held = checkpoint.places(model).stored_as
    name = next((held[name] for name in matrix.names if name in held), None)
    if name is None:
        return
    for block in checkpoint.numbers(name, count=at_once):
        yield block[:count].to(matrix.tensor.dtype)
        count -= len(block)
        if count <= 0:
            return


def _warnings(checkpoint: StagedCheckpoint, parameters: list[Sorted], example: DecayExample | None) -> list[str]:
    said = []
    trained = [each for each in parameters if each.group != FROZEN]
    lacking = [each.names[0] for each in trained if not each.in_file]
    if lacking:
        said.append(
            words.LACKING.format(name=checkpoint.name, count=len(lacking), trained=len(trained), first=lacking[0])
        )
    for first, *others in shared_names((each.names[0], each.tensor) for each in trained):
        said.append(words.ON_ONE_MEMORY.format(first=first, others=", ".join(others)))
    if example is None:
        coming = words.LATER if checkpoint.manifest.is_outline else words.NO_EXAMPLE
        said.append(words.ON_HUB if checkpoint.manifest.is_on_hub else coming)
    return said


def _built_frozen(model_class: type[PreTrainedModel], checkpoint: StagedCheckpoint) -> set[str]:
    """Names of the parameters that the class builds frozen."""
    with torch.device("meta"):
        fresh = model_class(copy.deepcopy(checkpoint.config))
    return {name for name, each in fresh.named_parameters() if not each.requires_grad}


def _thawed(model_class: type[PreTrainedModel], frozen: set[str], parameters: list[Sorted]) -> list[str]:
    """What the class builds frozen, and loading sets free: sinusoidal positions, for one."""
    free = [each.names[0] for each in parameters if each.group != FROZEN]
    thawed = [name for name in free if name in frozen]
    if not thawed:
        return []
    return [words.THAWED.format(model=model_class.__name__, names=", ".join(thawed))]


def snippet(model_class: str, *, learning_rate: float, warmup_steps: int, steps: int, weight_decay: float) -> str:
    """Write the Python that builds these groups, an AdamW and a schedule for them."""
    patterns = ",\n    ".join(f'r"{pattern}"' for pattern in NAMES)
    return f"""\
import torch
from transformers import {model_class}, get_scheduler
from transformers.trainer_pt_utils import get_parameter_names

model = {model_class}.from_pretrained("path/to/the/checkpoint")

# The rule of transformers' Trainer: no decay inside a LayerNorm, nor where the name matches.
names_without_decay = [
    {patterns},
]
decayed = set(get_parameter_names(model, [torch.nn.LayerNorm], names_without_decay))
trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]  # tied: once
groups = [
    {{"params": [p for name, p in trained if name in decayed], "weight_decay": {weight_decay!r}}},
    {{"params": [p for name, p in trained if name not in decayed], "weight_decay": 0.0}},
]
optimizer = torch.optim.AdamW(groups, lr={learning_rate!r})
scheduler = get_scheduler(
    "linear", optimizer, num_warmup_steps={warmup_steps!r}, num_training_steps={steps!r}
)
# In the loop, for every batch:
#     loss.backward(); optimizer.step(); scheduler.step(); optimizer.zero_grad()
"""
