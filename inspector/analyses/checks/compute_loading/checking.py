"""Check that config.json, the names in the files, and the class that loads them are of one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeGuard

import transformers
from transformers import PreTrainedModel

from inspector.analyses.checks import words_loading as words
from inspector.analyses.checks.compute_loading.companions import check_companions
from inspector.analyses.checks.compute_loading.declared import check_declared
from inspector.analyses.checks.compute_parts import RANK, at_least, conclude
from inspector.analyses.checks.result import OUTCOMES, Check, Evidence, LoadingRow, TieRow
from inspector.analyses.checks.words_loading import ties as tie_words
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.prediction import find_prediction
from inspector.store.prediction import declared_layers
from inspector.store.readers.levels import read_setting

LOADING = "Loading"
HEADS, GROUPS, HEAD_DIM = "num_attention_heads", "num_key_value_heads", "head_dim"


def check_loading(
    checkpoint: StagedCheckpoint, model: PreTrainedModel, rows: tuple[LoadingRow, ...], ties: tuple[TieRow, ...]
) -> Check:
    """What a loader makes of the files, and what contradicts it in config.json.

    Args:
        model: Of the class, on the meta device.
        rows: Of the contract; what is missing or left over other checks say.
        ties: What loaders make of the output matrix.
    """
    evidence = [
        *check_companions(checkpoint),
        *check_declared(checkpoint),
        *_class(checkpoint),
        *_heads(checkpoint, model),
        *_prediction(checkpoint, model),
        *_ties(ties),
    ]
    counted: Counter[str] = Counter()
    for row in rows:
        counted[row.outcome] += row.count
    said = words.outcomes(type(model).__name__, {each: counted[each] for each in reversed(OUTCOMES) if counted[each]})
    return _judge(evidence) or conclude(LOADING, evidence, said)


def check_codes(checkpoint: StagedCheckpoint) -> Check | None:
    """What is wrong with what belongs to quantized weights; None where nothing is, so far as names tell."""
    return _judge([*check_companions(checkpoint), *check_declared(checkpoint)])


def _judge(evidence: list[Evidence]) -> Check | None:
    """The check of some evidence; None where nothing is odd."""
    odd = at_least("minor", sorted(evidence, key=lambda each: -RANK[each.severity]))
    if not odd:
        return None
    said = words.first_of(len(odd), odd[0].subject, odd[0].detail)
    return conclude(LOADING, evidence, said, words.STEPS[odd[0].problem])


def _class(checkpoint: StagedCheckpoint) -> Iterator[Evidence]:
    """That the named class is another kind of model's than model_type: loaders go by one or by the other."""
    config = checkpoint.config
    named = str(next(iter(config.architectures or ()), ""))
    found = getattr(transformers, named, None)
    own = getattr(found, "config_class", None)
    if own is None or isinstance(config, own) or own in config.sub_configs.values():
        return
    detail = words.OTHER_KIND.format(named=named, own=own.model_type, said=config.model_type)
    yield Evidence(named, words.OF_ANOTHER_KIND, "major", None, detail)


def _heads(checkpoint: StagedCheckpoint, model: PreTrainedModel) -> Iterator[Evidence]:
    """What the attention's numbers in config.json contradict: each other, or a matrix of one row a head's number."""
    heads, groups, size = (read_setting(checkpoint.config, key).value for key in (HEADS, GROUPS, HEAD_DIM))
    if not (_is_count(heads) and _is_count(groups)):
        return
    if heads % groups:
        detail = words.UNEVEN.format(heads=heads, groups=groups)
        yield Evidence(GROUPS, words.UNEVEN_GROUPS, "major", None, detail)
    hidden = read_setting(checkpoint.config, "hidden_size").value
    size = size or (hidden // heads if _is_count(hidden) else None)
    if _is_count(size):
        yield from _rows_of_heads(checkpoint, model, {heads * size: HEADS, groups * size: GROUPS}, size)


def _rows_of_heads(
    checkpoint: StagedCheckpoint, model: PreTrainedModel, wanted: dict[int, str], size: int
) -> Iterator[Evidence]:
    """Matrices that would have another number of heads.

    Args:
        wanted: Rows -> the setting that asks for them.
        size: Of a head.
    """
    places, shapes = checkpoint.places(model), {name: each.shape for name, each in model.named_parameters()}
    for place, stored in places.stored_as.items():
        shape, held = shapes.get(place, ()), checkpoint.tensors[checkpoint.tensors.numbers[stored]].shape
        if len(shape) != 2 or len(held) != 2 or shape[1] != held[1] or shape[0] == held[0] or held[0] % size:
            continue
        if key := wanted.get(shape[0]):
            detail = words.heads(held[0], held[0] // size, size, key=key, said=shape[0] // size)
            yield Evidence(stored, words.OTHER_HEADS, "critical", held[0] // size, detail)


def _prediction(checkpoint: StagedCheckpoint, model: PreTrainedModel) -> Iterator[Evidence]:
    """That config.json declares layers for multi-token prediction which the files lack."""
    declared = declared_layers(checkpoint.config_values)
    if declared is None:
        return
    key, count = declared
    found = find_prediction(model, checkpoint.places(model).filled, checkpoint.tensors.names, checkpoint.config_values)
    held = len(found.layers) if found else 0
    if (found and not found.layers) or held >= count:
        return
    detail = words.prediction(key, count, held)
    # Exports and quantized copies leave all of them out, and keep config.json.
    yield Evidence(key, words.FEWER_AHEAD, "minor" if held else "note", count - held, detail)


def _ties(rows: tuple[TieRow, ...]) -> Iterator[Evidence]:
    """What loaders lose of the output matrix: the numbers that the files hold, or all that it is made of."""
    for row in rows:
        if row.outcome in (tie_words.THROWN_AWAY, tie_words.RANDOM):
            yield Evidence(row.loader, row.outcome, "minor", None, row.reason)


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value > 0
