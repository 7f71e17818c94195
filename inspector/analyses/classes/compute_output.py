"""Run one example through a model for the shapes of what it returns, without computing anything."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.utils import import_utils
from transformers.utils.generic import ModelOutput

from inspector.analyses.classes import words
from inspector.analyses.classes.compute_fields import ASKED, BatchSizes, output_fields
from inspector.analyses.classes.result import ExampleOutput
from inspector.errors import InspectorError
from inspector.models.build import meta_model
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.placing.routing import APART
from inspector.store.readers.levels import read_setting

EXAMPLE_IDS = 8  # where there is no tokenizer
FEW = 4  # so short an example is made longer for the second look, others shorter
CHOICES = 2
LAYERS = 2  # of the second look at a deeper model: how many there are changes no axis


@dataclass(frozen=True, slots=True)
class _Example:
    """What the model reads."""

    ids: tuple[int, ...]
    type_ids: tuple[int, ...]
    tokens: tuple[str, ...]


def model_output(
    checkpoint: StagedCheckpoint, model: PreTrainedModel, text: str, *, layers: int = LAYERS
) -> tuple[ExampleOutput | None, dict[int, int] | None, list[str]]:
    """Run an example and describe every field of what comes back.

    On the meta device, the pass computes nothing: its tensors have a shape and a dtype and no
    numbers, so none of a weight that the file lacks could be shown. A model whose code asks a tensor
    for its numbers runs only with them. A second pass of other sizes tells what each axis counts.

    Args:
        model: On the meta device, or with its numbers on the CPU.
        layers: In the second pass of a model that has more of them.

    Returns:
        The output; how often each module ran (by its id); and warnings. None and None where the
        model did not run, and a warning says why.
    """
    try:
        example, warnings = _example(checkpoint, model, text)
        first = BatchSizes(1, CHOICES, len(example.ids), len(example.ids))
        with _counted(model) as uses:
            output = _run(model, _batch(model, example, first))
    except InspectorError as error:
        return None, None, [words.NO_OUTPUT.format(error=error)]
    except Exception:
        return None, None, [words.DID_NOT_RUN.format(model=type(model).__name__)]
    other, second = look_again(_shallow(model, layers), example, first)
    if other is None:  # few layers may not run by themselves
        other, second = look_again(model, example, first)
    shown = ExampleOutput(
        class_name=type(output).__name__,
        module=type(output).__module__,
        tokens=example.tokens,
        call=_call(_batch(model, example, first)),
        fields=output_fields(model, output, other, (first, second)),
    )
    return shown, uses, warnings


def _example(checkpoint: StagedCheckpoint, model: PreTrainedModel, text: str) -> tuple[_Example, list[str]]:
    if checkpoint.tokens is not None:
        encoded = checkpoint.tokens.encode(text)
        checkpoint.check_ids(encoded.ids, encoded.type_ids)
        return _Example(encoded.ids, encoded.type_ids, encoded.tokens), []
    rows = int(getattr(model.get_input_embeddings(), "num_embeddings", EXAMPLE_IDS))
    ids = tuple(range(min(EXAMPLE_IDS, rows, checkpoint.positions or EXAMPLE_IDS)))
    return _Example(ids, (0,) * len(ids), tuple(f"id {index}" for index in ids)), [
        words.IDS_INSTEAD.format(name=checkpoint.name, last=ids[-1])
    ]


def _batch(model: PreTrainedModel, example: _Example, size: BatchSizes) -> dict[str, Any]:
    """Arguments of the model's forward method, the example cut or drawn out to a size."""
    takes = inspect.signature(model.forward).parameters
    shape: tuple[int, ...] = (size.batch, size.positions)
    if type(model).__name__.endswith("ForMultipleChoice"):
        shape = (size.batch, size.choices, size.positions)
    ids = torch.tensor(_resized(example.ids, size.positions)).expand(shape)
    arguments: dict[str, Any] = {"input_ids": ids}
    if "attention_mask" in takes:
        arguments["attention_mask"] = torch.ones_like(ids)
    if "token_type_ids" in takes and (read_setting(model.config, "type_vocab_size").value or 0) > 1:
        types = torch.tensor(_resized(example.type_ids, size.positions))
        arguments["token_type_ids"] = types.expand(shape)
    if "decoder_input_ids" in takes:
        start = read_setting(model.config, "decoder_start_token_id").value
        first = start if isinstance(start, int) else example.ids[0]
        shifted = _resized((first, *example.ids[:-1]), size.decoder_positions)
        arguments["decoder_input_ids"] = torch.tensor(shifted).expand(size.batch, size.decoder_positions)
    return arguments | dict.fromkeys(ASKED, True)


def _resized(ids: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Keep the first and the last ids, which may be special, and drop or repeat in between."""
    if length <= len(ids):
        return (*ids[:1], *ids[len(ids) - length + 1 :])
    middle = ids[len(ids) // 2]
    return (*ids[:-1], *[middle] * (length - len(ids)), ids[-1])


def _run(model: PreTrainedModel, arguments: dict[str, Any]) -> ModelOutput:
    device = model.device
    placed = {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in arguments.items()}
    with torch.inference_mode(), device, _without_numbers(model) if device.type == "meta" else nullcontext():
        return model(**placed, return_dict=True)


@contextmanager
def _without_numbers(model: PreTrainedModel) -> Iterator[None]:
    """Have a model on the meta device run as transformers runs one on fake tensors: it looks at no numbers.

    Experts run as one product: torch's grouped one takes no float32 there.
    """
    is_fake = import_utils.is_fake_tensor
    experts = getattr(model.config, "_experts_implementation", None)
    import_utils.is_fake_tensor = lambda each: is_fake(each) or (isinstance(each, torch.Tensor) and each.is_meta)
    if experts == APART:
        model.set_experts_implementation("batched_mm")
    try:
        yield
    finally:
        import_utils.is_fake_tensor = is_fake
        if experts == APART:
            model.set_experts_implementation(experts)


def _shallow(model: PreTrainedModel, layers: int) -> PreTrainedModel:
    """The same class with few layers, whose output has the same axes; the model itself where there is no such thing."""
    config = copy.deepcopy(model.config)
    every = read_setting(config, "num_hidden_layers")
    if model.device.type != "meta" or every.level or (every.value or 0) <= layers:
        return model
    try:
        config.num_hidden_layers = layers
        for name, value in vars(config).items():  # one kind a layer
            if isinstance(value, list) and len(value) == every.value:
                setattr(config, name, value[:layers])
        return meta_model(type(model), config).eval()
    except Exception:  # a configuration may refuse it in any class of error
        return model


def look_again(model: PreTrainedModel, example: _Example, first: BatchSizes) -> tuple[ModelOutput | None, BatchSizes]:
    """Run a batch of other sizes; batches of one where the model takes no others."""
    change = -1 if first.positions > FEW else 1
    for batch in (first.batch + 1, first.batch):
        size = BatchSizes(batch, CHOICES + 2, first.positions + 3 * change, first.decoder_positions + 2 * change)
        try:
            return _run(model, _batch(model, example, size)), size
        except Exception:  # a model refuses sizes in any class of error; then no axis is told apart by them
            continue
    return None, first


@contextmanager
def _counted(model: PreTrainedModel) -> Iterator[dict[int, int]]:
    """Count how often each module runs, by its id."""
    uses: dict[int, int] = {}

    def count(module: torch.nn.Module, _: object) -> None:
        uses[id(module)] = uses.get(id(module), 0) + 1

    handles = [module.register_forward_pre_hook(count) for module in model.modules()]
    try:
        yield uses
    finally:
        for handle in handles:
            handle.remove()


def _call(arguments: Mapping[str, Any]) -> str:
    """The call as Python code, tensors named by their shapes."""
    shown = (
        f"{name}={name}" if isinstance(value, torch.Tensor) else f"{name}={value}" for name, value in arguments.items()
    )
    return f"model({', '.join(shown)})"
