"""Say where a checkpoint's model would run, before any weight of it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from inspector.analyses.placement.request import PlacementRequest
from inspector.analyses.placement.words import NO_BLOCKS
from inspector.errors import CheckpointError, InspectorError
from inspector.models.loading import load, plan_for
from inspector.progress import Progress
from inspector.request import answers
from inspector.results.placement import DISK, Placement, PlacementOption
from inspector.settings import Device, Dtype

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from inspector.models.checkpoint import StagedCheckpoint
    from inspector.models.placing.pacing import Estimate
    from inspector.models.placing.placement import Plan

TOKENS = 16  # of the streamed pass whose time is estimated


@answers(PlacementRequest)
def placement(checkpoint: StagedCheckpoint, request: PlacementRequest, *, progress: Progress) -> Placement:
    """Plan where a model runs and its other ways, by its sizes; where "stream" is asked for, its pass is timed.

    Raises:
        CheckpointError: If no model can be built.
        NotInCheckpointError: If there is no config.json or no such head.
        RequestError: If this machine has no such device.
    """
    progress(None, "Computing sizes")
    chosen = request.task or _task(checkpoint)
    plan = plan_for(checkpoint, chosen, device=request.device, dtype=request.dtype)
    return replace(plan.result(), ways=tuple(_ways(checkpoint, chosen, plan, request, progress)))


def _ways(
    checkpoint: StagedCheckpoint, task: str, plan: Plan, request: PlacementRequest, progress: Progress
) -> Iterator[PlacementOption]:
    """On one device, spread and streamed, each as if it had been chosen."""
    dtype = request.dtype
    for device in cast("tuple[Device, ...]", (plan.device.type, "spread", "stream")):
        try:
            there = plan_for(checkpoint, task, device=device, dtype=dtype)
            timed = _timed(checkpoint, task, dtype, progress) if device == request.device == "stream" else None
        except InspectorError as error:
            yield PlacementOption(device, "", 0, 0, fits=False, seconds=None, note=str(error))
            continue
        found = there.result()
        on_disk = sum(place.nbytes for place in found.places if place.device == DISK)
        fits = all(place.allowed_nbytes is None or place.nbytes <= place.allowed_nbytes for place in found.places)
        seconds, note = (timed.seconds, timed.basis) if timed else (None, "")
        if device == "stream" and not on_disk:
            fits, note = False, NO_BLOCKS
        yield PlacementOption(
            device, found.dtype, found.nbytes - on_disk, on_disk, fits=fits, seconds=seconds, note=note
        )


def _timed(checkpoint: StagedCheckpoint, task: str, dtype: Dtype, progress: Progress) -> Estimate | None:
    from inspector.models.placing.pacing import estimate
    from inspector.models.running import memory_guard

    loaded = load(checkpoint, task, device="stream", dtype=dtype, progress=progress)
    progress(None, "Timing a matrix")
    with memory_guard(loaded, "model"):
        return estimate(loaded.stream, min(TOKENS, checkpoint.positions or TOKENS)) if loaded.stream else None


def _task(checkpoint: StagedCheckpoint) -> str:
    """The head that the pages run, else the base model; where the file holds neither, the class that config.json names.

    Of an encoder and decoder, its own class with a head goes before the base model.
    """
    from inspector.models.build import OWN, find_class

    if checkpoint.language_heads:
        return checkpoint.language_heads[0]
    config = checkpoint.config
    whole = find_class(config, "seq2seq_lm") if config.is_encoder_decoder else None
    if whole and whole.__name__ in (config.architectures or ()):
        return OWN
    base = find_class(config, "base")
    if base is None:
        return "seq2seq_lm" if whole else OWN
    return "base" if _filled(checkpoint, base) else OWN


def _filled(checkpoint: StagedCheckpoint, base: type[PreTrainedModel]) -> bool:
    """Whether the file has all that the base model computes with: a class may be a part of it, as a vocoder is."""
    from inspector.models.build import needed, tied_as_loaded

    try:
        model = tied_as_loaded(lambda: checkpoint.meta_model(base), lambda model: checkpoint.places(model).covered)
    except CheckpointError:  # far too large for the file, or made from no such config
        return False
    named = dict(model.named_parameters(remove_duplicate=False))
    held = {id(named[name]) for name in checkpoint.places(model).covered if name in named}
    return not needed((name for name, parameter in named.items() if id(parameter) not in held), "base")
