"""Say what each field of a model's output holds, what its axes count, and what would fill it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.utils.generic import ModelOutput

from inspector.analyses.classes import words_fields as words
from inspector.analyses.classes.result import OutputField
from inspector.store.readers.levels import read_setting

ASKED = {"output_hidden_states": ("hidden_states",), "output_attentions": ("attentions",)}
# field -> arguments of which those that the class takes would fill it
FILLED_BY = {
    "loss": ("labels", "next_sentence_label", "start_positions", "end_positions"),
    "mc_loss": ("mc_labels",),
    "aux_loss": ("output_router_logits", "labels"),
    "router_logits": ("output_router_logits",),
}


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """Sizes of one batch; two batches that differ in all of them tell what each axis counts."""

    batch: int
    choices: int
    positions: int
    decoder_positions: int


def output_fields(
    model: PreTrainedModel, output: ModelOutput, other: ModelOutput | None, sizes: tuple[BatchSizes, BatchSizes]
) -> tuple[OutputField, ...]:
    """Describe every field of an output, in the order of its class.

    Args:
        output: Of a batch of the first size.
        other: Of a batch of the second size: what changed tells what an axis counts. None: the
            model took no other size, and only the config names axes.
        sizes: Of both batches.
    """
    return tuple(
        _field(name, getattr(output, name), getattr(other, name, None), model, sizes) for name in _names(output)
    )


def _names(output: ModelOutput) -> list[str]:
    declared = [field.name for field in dataclasses.fields(type(output))]  # type: ignore[arg-type]
    return [*declared, *(name for name in output if name not in declared)]


def _field(
    name: str, value: Any, other: Any, model: PreTrainedModel, sizes: tuple[BatchSizes, BatchSizes]
) -> OutputField:
    tensors = list(_tensors(value))
    if not tensors:
        note = words.absent(name, value, _would_fill(name, model))
        return OutputField(name, value is not None, "none", 0, None, None, (), note)
    shapes = list(dict.fromkeys(tuple(tensor.shape) for tensor in tensors))
    axes: tuple[str, ...] = ()
    if len(shapes) == 1:
        again = next(iter(_tensors(other)), None)
        axes = _axes(name, shapes[0], tuple(again.shape) if again is not None else None, model, sizes)
    kinds = "tensor" if isinstance(value, torch.Tensor) else f"{len(tensors)} tensors"
    if isinstance(value, Cache):
        kinds = f"{type(value).__name__} of {kinds}"
    asked = next((argument for argument, fields in ASKED.items() if name.endswith(fields)), None)
    return OutputField(
        field=name,
        returned=True,
        kind=kinds,
        count=len(tensors),
        shape=shapes[0] if len(shapes) == 1 else None,
        dtype=str(tensors[0].dtype).removeprefix("torch."),
        axes=axes,
        note=words.note(name, shapes, asked=asked),
    )


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in a field, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, EncoderDecoderCache):
        yield from _tensors(value.self_attention_cache)
        yield from _tensors(value.cross_attention_cache)
    elif isinstance(value, Cache):
        for layer in value.layers:
            yield from _tensors((getattr(layer, "keys", None), getattr(layer, "values", None)))
    elif isinstance(value, Mapping):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _axes(
    name: str,
    shape: tuple[int, ...],
    again: tuple[int, ...] | None,
    model: PreTrainedModel,
    sizes: tuple[BatchSizes, BatchSizes],
) -> tuple[str, ...]:
    """Name the axes: by what changed between two runs, and by the config where nothing did."""
    if again is None or len(again) != len(shape):
        again = shape
    changes = {
        (getattr(sizes[0], field.name), getattr(sizes[1], field.name)): field.name
        for field in dataclasses.fields(BatchSizes)
    }
    found = []
    for place, pair in enumerate(zip(shape, again, strict=True)):
        if pair[0] != pair[1]:
            found.append(changes.get(pair, str(pair[0])).replace("_", " "))
        elif place == 0 and sizes[0].batch == sizes[1].batch == pair[0]:
            found.append("batch")
        else:
            found.append(_constant_axis(name, place, shape, model))
    return tuple(found)


def _constant_axis(name: str, place: int, shape: tuple[int, ...], model: PreTrainedModel) -> str:
    """Name an axis whose size the config fixes; the size itself where no rule knows it."""
    size, last = shape[place], place == len(shape) - 1
    config = model.config
    if name == "seq_relationship_logits" or type(model).__name__.endswith("SentencePrediction"):
        known = {"next or random": 2} if last else {}
    elif name.endswith("logits") and last:
        head = model.get_output_embeddings()
        rows = getattr(head, "out_features", None) if head is not None else None
        known = {"vocab": rows} if rows else {"labels": read_setting(config, "num_labels").value}
    elif name.endswith(("hidden_state", "hidden_states", "pooler_output")) and last:
        known = {"d_model": read_setting(config, "hidden_size").value}
    elif name.endswith("attentions") and len(shape) == 4 and place == 1:
        known = {"heads": read_setting(config, "num_attention_heads").value}
    elif name == "past_key_values" and len(shape) == 4:
        known = {"key-value heads": size} if place == 1 else {"head_dim": size} if last else {}
    else:
        known = {}
    return next((axis for axis, wanted in known.items() if wanted == size), str(size))


def _would_fill(name: str, model: PreTrainedModel) -> list[str]:
    """Arguments of the class that would fill a field."""
    takes = inspect.signature(model.forward).parameters
    return [each for each in FILLED_BY.get(name, ()) if each in takes]
