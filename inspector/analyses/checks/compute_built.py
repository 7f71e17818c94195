"""Build the class that config.json names, for checks: what fits, what lacks, and why it cannot be built."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from transformers import PreTrainedModel

from inspector.analyses.checks import words_structure as words
from inspector.analyses.checks.compute_structure import Built, Unbuilt
from inspector.analyses.checks.result import Evidence
from inspector.errors import InspectorError
from inspector.models.build import LANGUAGE_TASKS, find_class, meta_model, own_class
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.configs import build_config
from inspector.models.incomplete import Fault, find_fault
from inspector.models.naming import find_places
from inspector.models.ties import TieFlag, find_flag, possible_ties
from inspector.models.weightless.outline import build_outline
from inspector.store.manifests.findings import UNLISTED, UNREAD

LOADERS = ("base", "pretraining", *LANGUAGE_TASKS)  # tasks whose classes take their tensors from one file


def build_for_checks(checkpoint: StagedCheckpoint) -> Built:
    """Build the class that config.json names, and note what fits.

    Raises:
        InspectorError: If it cannot be built; `explain_failure` says more of it.
    """
    model, missing = checkpoint.outlined
    named, headless = _unused_class(checkpoint, type(model))
    return Built(
        model_class=type(model).__name__,
        pipeline=checkpoint.pipeline,
        unused_head=named,
        headless=headless,
        declared=type(model).__name__ in (checkpoint.config.architectures or ()),
        prefix=model.base_model_prefix,
        parameters=model.num_parameters(),
        shapes=_shapes(model),
        missing=_once(model, missing),
        left_over=tuple(left_over := checkpoint.left_over(model)),
        loader=_loader(checkpoint, left_over) if left_over else "",
        ahead=checkpoint.prediction(model),
        flag=_flag(checkpoint, model, missing),
        unread=_unread(checkpoint, model, missing),
    )


def _unused_class(checkpoint: StagedCheckpoint, loaded: type[PreTrainedModel]) -> tuple[str, int]:
    """The class that config.json names and its pipeline does not load, and how many of its tensors are not there."""
    if checkpoint.pipeline is None:
        return "", 0
    named = own_class(build_config(checkpoint.config_values, checkpoint.name))
    if named is loaded:
        return "", 0
    try:
        model, missing = build_outline(checkpoint, named)
    except InspectorError:  # that nobody loads it is all that matters
        return named.__name__, 0
    return named.__name__, len(_once(model, missing))


def _loader(checkpoint: StagedCheckpoint, left_over: Sequence[str]) -> str:
    """The class of this kind of model that loads what another one leaves over; "" where none does."""
    for task in LOADERS:
        found = find_class(checkpoint.config, task)
        with suppress(InspectorError):  # it is not built from such a config
            if found and not set(left_over) & set(checkpoint.places(checkpoint.meta_model(found)).unused):
                return found.__name__
    return ""


def _shapes(model: PreTrainedModel) -> dict[str, tuple[int, ...]]:
    named = model.named_parameters(remove_duplicate=False)
    return {name: tuple(parameter.shape) for name, parameter in named}


def _once(model: PreTrainedModel, names: Iterable[str]) -> tuple[str, ...]:
    """Names without those that are another one's tensor, sorted."""
    tensors = dict(model.named_parameters(remove_duplicate=False))
    found = {id(tensors.get(name, name)): name for name in sorted(names, reverse=True)}
    return tuple(sorted(found.values()))


def explain_failure(checkpoint: StagedCheckpoint, why: str) -> Unbuilt:
    """Say what keeps the class from being built, or the model from being used, tensor by tensor."""
    on_meta = _meta_model(checkpoint)
    if on_meta is None or checkpoint.manifest.adapter or checkpoint.unread.codes:
        return Unbuilt(why)
    return Unbuilt(why, fault=_fault(checkpoint, on_meta), wrong=tuple(_mismatches(checkpoint, on_meta)))


def _meta_model(checkpoint: StagedCheckpoint) -> PreTrainedModel | None:
    """The class of config.json, without numbers; None where it cannot be built, and building it says why."""
    try:
        return meta_model(checkpoint.own_class, checkpoint.config)
    except Exception:
        return None


def _fault(checkpoint: StagedCheckpoint, on_meta: PreTrainedModel) -> Fault | None:
    """What keeps the files from being a model of the class, if that is known."""
    shapes = {tensor.name: tensor.shape for tensor in checkpoint.tensors}
    return find_fault(checkpoint.name, on_meta, checkpoint.places(on_meta), shapes)


def _mismatches(checkpoint: StagedCheckpoint, on_meta: PreTrainedModel) -> list[Evidence]:
    """Tensors whose shape is not the one that config.json asks for."""
    stored = {tensor.name: tensor for tensor in checkpoint.tensors}
    held = find_places(on_meta, stored).stored_as
    return [
        Evidence(
            found,
            "other shape than config.json asks for",
            "critical",
            None,
            words.mismatch(stored[found].shape, wanted),
        )
        for name, wanted in _shapes(on_meta).items()
        if (found := held.get(name)) and stored[found].shape != wanted
    ]


def _flag(checkpoint: StagedCheckpoint, model: PreTrainedModel, missing: Collection[str]) -> TieFlag | None:
    """What decides on ties, where nothing is missing but what could be tied."""
    if not missing or not possible_ties(model).keys() >= set(missing):
        return None
    return find_flag(model, checkpoint.config, checkpoint.config_values)


def _unread(checkpoint: StagedCheckpoint, model: PreTrainedModel, missing: Iterable[str]) -> dict[str, str]:
    """Which files have what is missing, and are not read."""
    file_of = {name: each.subject for each in checkpoint.manifest.found(UNLISTED, UNREAD) for name in each.names}
    held = find_places(model, file_of).stored_as if file_of and missing else {}
    return {name: file_of[held[name]] for name in missing if name in held}
