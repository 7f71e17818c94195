"""Decide where the model for a task runs, and load it: whole, in parts, or to be read a block at a time."""

from __future__ import annotations

import inspect

import torch

from inspector.errors import NotInCheckpointError
from inspector.models import build
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.naming import embedding_names
from inspector.models.placing.placement import Plan, make_plan
from inspector.models.placing.spreading import put_in_place
from inspector.models.placing.streaming import stream_model
from inspector.models.quantized.formats import FLOAT8
from inspector.models.running import Loaded, forward, memory_guard
from inspector.progress import Progress, no_progress
from inspector.settings import Device, Dtype

WARM_UP = 8  # tokens of the first pass: Funnel pools its states down to a quarter


def plan_for(checkpoint: StagedCheckpoint, task: str, *, device: Device = "auto", dtype: Dtype = "auto") -> Plan:
    """Decide where the model for a task runs, by its sizes and before any weight is read.

    Args:
        task: One of build.TASKS, or build.OWN.
        device: Where to; "auto" asks the settings, then takes the best there is.
        dtype: In which precision; "auto" likewise.

    Raises:
        CheckpointError: If the model cannot be built.
        RequestError: If the machine has no such device.
    """
    plans: dict[tuple[str, ...], Plan] = checkpoint.kept.setdefault("plans", {})
    key = (task, device, dtype)
    if key not in plans:
        stored = _stored_dtype(checkpoint)
        on_meta = checkpoint.meta_model(build.task_class(checkpoint.config, task))
        plans[key] = make_plan(on_meta, stored=stored, settings=checkpoint.settings, device=device, dtype=dtype)
    return plans[key]


def _stored_dtype(checkpoint: StagedCheckpoint) -> torch.dtype:
    """The dtype of the matrix that looks tokens up; of a class that has none, of the largest tensor."""
    try:
        stored = checkpoint.embedding.dtype
    except NotInCheckpointError:
        if checkpoint.structure is None or embedding_names(checkpoint.structure[0]):
            raise
        return build.stored_dtype(checkpoint.outlines)
    return torch.bfloat16 if stored in FLOAT8 else getattr(torch, stored)


def load(
    checkpoint: StagedCheckpoint,
    task: str,
    *,
    device: Device = "auto",
    dtype: Dtype = "auto",
    progress: Progress = no_progress,
) -> Loaded:
    """Build the model for a task, once for each device and dtype.

    Args:
        task: One of build.TASKS: "masked_lm", "question_answering", ..., or "base"; or build.OWN.
        device: Where to; "auto" asks the settings, then takes the best there is.
        dtype: In which precision; "auto" likewise.
        progress: Told what is being done, and from now on each block that a streamed model reads.

    Raises:
        NotInCheckpointError: If the file lacks weights that the task needs.
        CheckpointError: If the model cannot be built.
        RequestError: If the machine has no such device, or a block alone is too large.
        WorkerError: If the device has too little memory.
    """
    plan = plan_for(checkpoint, task, device=device, dtype=dtype)
    models: dict[tuple[str, ...], Loaded] = checkpoint.kept.setdefault("models", {})
    key = (task, *plan.key)
    progress(None, "Loading the model")
    if key not in models:
        build.quiet()
        models[key] = (_stream if plan.streamed else _load)(checkpoint, task, plan)
    loaded = models[key]
    if loaded.stream:
        loaded.stream.progress = progress
    return loaded


def _stream(checkpoint: StagedCheckpoint, task: str, plan: Plan) -> Loaded:
    """Build a model that is read a block at a time, whenever it runs."""
    stream = stream_model(checkpoint, task, plan)
    return Loaded(stream.model, plan.device, plan.dtype, reason=plan.reason, stream=stream)


def _load(checkpoint: StagedCheckpoint, task: str, plan: Plan) -> Loaded:
    """Build a model with its weights, and put it where it runs."""
    model, missing = build.build_model(
        build.task_class(checkpoint.config, task),
        checkpoint.config,
        checkpoint.state,
        name=checkpoint.name,
        # What is spread is converted part by part, when it is its turn.
        dtype=None if plan.parts else plan.dtype,
    )
    build.require(missing, task=task, name=checkpoint.name, gap=checkpoint.gap)
    loaded = Loaded(model, plan.device, plan.dtype, bool(plan.parts), plan.reason)
    with memory_guard(loaded, "model"):
        put_in_place(model, plan)
    # A first pass pays for what torch sets up lazily: not in anybody's milliseconds.
    ids = torch.zeros((1, min(WARM_UP, checkpoint.positions or WARM_UP)), dtype=torch.long)
    takes = inspect.signature(model.base_model.forward).parameters
    decoder_ids = ids if "decoder_input_ids" in takes else None
    with build.first_pass(model, checkpoint.name):
        # Perceiver's base model reads vectors; its model with a head looks them up.
        whole = task == "seq2seq_lm" or model.main_input_name == "inputs"
        forward(loaded, ids, head=whole, decoder_ids=decoder_ids)
    return loaded
