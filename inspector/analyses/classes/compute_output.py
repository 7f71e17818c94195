"""Run one example through a model for the shapes of what it returns, without computing anything."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.func import functional_call
from transformers import PreTrainedModel
from transformers.utils.generic import ModelOutput

from inspector.analyses.classes import words
from inspector.analyses.classes.compute_fields import ASKED, Size, output_fields
from inspector.analyses.classes.result import ExampleOutput
from inspector.errors import InspectorError
from inspector.models.checkpoint import Checkpoint
from inspector.models.memory import named_tensors

EXAMPLE_IDS = 8  # where there is no tokenizer
FEW = 4  # so short an example is made longer for the second look, others shorter
CHOICES = 2
GROUPED = "grouped_mm"


@dataclass(frozen=True, slots=True)
class _Example:
    """What the model reads."""

    ids: tuple[int, ...]
    type_ids: tuple[int, ...]
    tokens: tuple[str, ...]


def model_output(
    checkpoint: Checkpoint, model: PreTrainedModel, text: str
) -> tuple[ExampleOutput | None, dict[int, int] | None, list[str]]:
    """Run an example and describe every field of what comes back.

    The pass runs on fake tensors (shape and dtype, no numbers): nothing is computed, and no number
    of a weight that the file lacks could be shown. Where the code of a model asks a tensor for its
    numbers, the pass runs for real, if the model has any. A second pass of other sizes tells what
    each axis counts.

    Returns:
        The output; how often each module ran (by its id); and warnings. None and None where the
        model did not run, and a warning says why.
    """
    try:
        example, warnings = _example(checkpoint, model, text)
        first = Size(1, CHOICES, len(example.ids), len(example.ids))
        with _counted(model) as uses:
            output, fake = _run_either(model, _batch(model, example, first))
    except InspectorError as error:
        return None, None, [words.NO_OUTPUT.format(error=error)]
    except Exception as error:
        return None, None, [words.DID_NOT_RUN.format(model=type(model).__name__, error=type(error).__name__)]
    other, second = _look_again(model, example, first, fake=fake)
    shown = ExampleOutput(
        class_name=type(output).__name__,
        module=type(output).__module__,
        tokens=example.tokens,
        call=_call(_batch(model, example, first)),
        fields=output_fields(model, output, other, (first, second)),
    )
    return shown, uses, warnings


def _example(checkpoint: Checkpoint, model: PreTrainedModel, text: str) -> tuple[_Example, list[str]]:
    if checkpoint.tokens is not None:
        encoded = checkpoint.tokens.encode(text)
        checkpoint.check_ids(encoded.ids, encoded.type_ids)
        return _Example(encoded.ids, encoded.type_ids, encoded.tokens), []
    rows = int(getattr(model.get_input_embeddings(), "num_embeddings", EXAMPLE_IDS))
    ids = tuple(range(min(EXAMPLE_IDS, rows, checkpoint.positions or EXAMPLE_IDS)))
    return _Example(ids, (0,) * len(ids), tuple(f"id {index}" for index in ids)), [
        words.IDS_INSTEAD.format(name=checkpoint.name, last=ids[-1])
    ]


def _batch(model: PreTrainedModel, example: _Example, size: Size) -> dict[str, Any]:
    """Arguments of the model's forward method, the example cut or drawn out to a size."""
    takes = inspect.signature(model.forward).parameters
    shape: tuple[int, ...] = (size.batch, size.positions)
    if type(model).__name__.endswith("ForMultipleChoice"):
        shape = (size.batch, size.choices, size.positions)
    ids = torch.tensor(_resized(example.ids, size.positions)).expand(shape)
    arguments: dict[str, Any] = {"input_ids": ids}
    if "attention_mask" in takes:
        arguments["attention_mask"] = torch.ones_like(ids)
    if "token_type_ids" in takes and getattr(model.config, "type_vocab_size", 0) > 1:
        types = torch.tensor(_resized(example.type_ids, size.positions))
        arguments["token_type_ids"] = types.expand(shape)
    if "decoder_input_ids" in takes:
        start = getattr(model.config, "decoder_start_token_id", None)
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


def _run_either(model: PreTrainedModel, arguments: dict[str, Any]) -> tuple[ModelOutput, bool]:
    try:
        return _run(model, arguments, fake=True), True
    except Exception:  # the model's code looked at numbers, which fake tensors do not have
        return _run(model, arguments, fake=False), False


def _run(model: PreTrainedModel, arguments: dict[str, Any], *, fake: bool) -> ModelOutput:
    if not fake:
        with torch.inference_mode():
            return model(**arguments, return_dict=True)
    fakes = FakeTensorMode(allow_non_fake_inputs=True)
    with fakes as mode, torch.inference_mode(), _batched_experts(model), _unlogged():
        faked = {
            name: mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
            for name, value in arguments.items()
        }
        held: dict[str, torch.Tensor] = {
            name: FakeTensor(mode, each.detach(), torch.device("cpu"))
            for name, each in named_tensors(model)
            if each.is_meta
        }
        return functional_call(model, held, kwargs=faked | {"return_dict": True}, tie_weights=False)


@contextmanager
def _batched_experts(model: PreTrainedModel) -> Iterator[None]:
    """Have experts run as one product: torch's grouped one takes no fake tensors in float32."""
    before = getattr(model.config, "_experts_implementation", None)
    if before != GROUPED:
        yield
        return
    model.set_experts_implementation("batched_mm")
    try:
        yield
    finally:
        model.set_experts_implementation(before)


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep torch from writing a traceback for what fake tensors cannot do: it is done for real then."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def _look_again(
    model: PreTrainedModel, example: _Example, first: Size, *, fake: bool
) -> tuple[ModelOutput | None, Size]:
    """Run a batch of other sizes; batches of one where the model takes no others."""
    change = -1 if first.positions > FEW else 1
    for batch in (first.batch + 1, first.batch):
        size = Size(batch, CHOICES + 2, first.positions + 3 * change, first.decoder_positions + 2 * change)
        try:
            return _run(model, _batch(model, example, size), fake=fake), size
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
