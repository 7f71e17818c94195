"""Read a model class' ancestors and siblings from Python itself, and try each on the file."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from inspector.analyses.classes import words
from inspector.analyses.classes.compute_merged import Merged, missing_of
from inspector.analyses.classes.result import AncestorClass, SiblingClass
from inspector.errors import CheckpointError
from inspector.models.build import find_class
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.heads import HEAD_MAPPINGS
from inspector.models.names import SPARE_MODULES

BASE_SPARES = (*SPARE_MODULES, "pooler.")  # a base model is whole without them
BASE = "base model"
# What a reader of model code meets, in the order of use; the first class that has it defines it.
OF_NOTE = (
    "forward",
    "generate",
    "prepare_inputs_for_generation",
    "base_model_prefix",
    "main_input_name",
    "config_class",
    "_tied_weights_keys",
    "tie_weights",
    "get_input_embeddings",
    "set_input_embeddings",
    "get_output_embeddings",
    "set_output_embeddings",
    "resize_token_embeddings",
    "from_pretrained",
    "save_pretrained",
    "push_to_hub",
    "_init_weights",
    "init_weights",
    "_no_split_modules",
    "_keep_in_fp32_modules",
    "_can_record_outputs",
    "gradient_checkpointing_enable",
    "num_parameters",
    "device",
    "dtype",
    "add_adapter",
    "load_adapter",
    "generate_batch",
    "tp_plan",
    "parameters",
    "named_parameters",
    "named_modules",
    "state_dict",
    "load_state_dict",
    "to",
    "train",
    "eval",
    "register_buffer",
)
WRITTEN_OUT = {"base_model_prefix", "main_input_name", "_tied_weights_keys", "config_class"}
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\[`])")
MARKUP = (  # links and roles of docstrings, as the text alone
    (re.compile(r"\[`~?([^`]+)`\](?:\([^)]*\))?"), r"\1"),
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),
    (re.compile(r":\w+:`~?([^`]+)`"), r"\1"),
    (re.compile(r"`([^`]*)`"), r"\1"),
)
LONGEST_SUMMARY = 240


def hierarchy(model_class: type[PreTrainedModel]) -> tuple[AncestorClass, ...]:
    """List a class and its ancestors in Python's method resolution order, `object` left out."""
    order = [each for each in inspect.getmro(model_class) if each is not object]
    return tuple(
        AncestorClass(
            name=each.__name__,
            module=each.__module__,
            kind="class" if issubclass(each, nn.Module) else "mixin",
            via=next((child.__name__ for child in order if each in child.__bases__), None),
            summary=summary(each),
            adds=tuple(_adds(each)),
        )
        for each in order
    )


def summary(of_class: type) -> str:
    """The first sentence of a class' own docstring, as plain text; "" without one."""
    text = " ".join(inspect.cleandoc(of_class.__doc__ or "").partition("\n\n")[0].split())
    for pattern, plain in MARKUP:
        text = pattern.sub(plain, text)
    first = SENTENCE_END.split(text)[0]
    return first if len(first) <= LONGEST_SUMMARY else first[: LONGEST_SUMMARY - 1] + "…"


def siblings(
    checkpoint: StagedCheckpoint, model_class: type[PreTrainedModel], missing: frozenset[str], merged: Merged | None
) -> Iterator[SiblingClass | str]:
    """Load the file into every public model class of the same module, and say what it lacks.

    Args:
        model_class: The model's own.
        missing: Names of that class's parameters that the file does not hold.
        merged: Of that class.

    Yields:
        The name of the class that is tried next, then what came of it; the model's own first.
    """
    yield _found(checkpoint, model_class, missing, of=model_class)
    for each in family_classes(checkpoint, model_class):
        yield each.__name__
        yield _tried(checkpoint, each, merged, of=model_class)


def family_classes(checkpoint: StagedCheckpoint, model_class: type[PreTrainedModel]) -> list[type[PreTrainedModel]]:
    """The other model classes of a class's module that can be built from this config."""
    module = sys.modules[model_class.__module__]
    public = (getattr(module, name, None) for name in getattr(module, "__all__", ()))
    found: list[Any] = [
        each
        for each in public
        if isinstance(each, type)
        and issubclass(each, PreTrainedModel)
        and each.forward is not nn.Module.forward  # those without one are ancestors alone
        and isinstance(checkpoint.config, each.config_class or type(None))
        and each is not model_class
    ]
    return sorted(found, key=lambda each: each.__name__)


def _adds(of_class: type) -> Iterator[str]:
    own = vars(of_class)
    for name in OF_NOTE:
        if name not in own or own[name] is None:
            continue
        if name in WRITTEN_OUT:
            if own[name]:
                shown = getattr(own[name], "__name__", None) or repr(own[name])
                yield f"{name} = {shown}"
        elif callable(own[name]) or isinstance(own[name], classmethod | staticmethod):
            yield f"{name}()"
        else:
            yield name


def _tried(
    checkpoint: StagedCheckpoint,
    model_class: type[PreTrainedModel],
    merged: Merged | None,
    *,
    of: type[PreTrainedModel],
) -> SiblingClass:
    try:
        missing = missing_of(checkpoint, model_class, merged)
    except CheckpointError as error:
        head, why = _head(checkpoint, model_class), str(error).partition(": ")[0]
        return _sibling(model_class, head, 0, present=False, note=words.UNFIT.format(why=why))
    return _found(checkpoint, model_class, missing, of=of)


def _found(
    checkpoint: StagedCheckpoint,
    model_class: type[PreTrainedModel],
    missing: frozenset[str],
    *,
    of: type[PreTrainedModel],
) -> SiblingClass:
    head = _head(checkpoint, model_class)
    lacking = sorted(missing)
    if head == BASE:
        spare = [name for name in lacking if any(part in name for part in BASE_SPARES)]
        if spare == lacking:
            note = words.loads_without(spare) if spare else words.WHOLE
            return _sibling(model_class, head, len(lacking), present=True, note=note)
    if lacking:
        return _sibling(model_class, head, len(lacking), present=False, note=words.lacks(lacking))
    if model_class is not of and head in HEAD_MAPPINGS and checkpoint.heads[head] != "present":
        return _sibling(model_class, head, 0, present=False, note=words.TRAINED_AS.format(model=of.__name__))
    return _sibling(model_class, head, 0, present=True, note=words.WHOLE)


def _head(checkpoint: StagedCheckpoint, model_class: type[PreTrainedModel]) -> str | None:
    for head, mapping in HEAD_MAPPINGS.items():
        found: Any = mapping.get(type(checkpoint.config), None)
        if found is not None and model_class in (found if isinstance(found, tuple) else (found,)):
            return head
    return BASE if model_class is find_class(checkpoint.config, "base") else None


def _sibling(
    model_class: type[PreTrainedModel], head: str | None, missing: int, *, present: bool, note: str
) -> SiblingClass:
    return SiblingClass(
        name=model_class.__name__,
        parent=next(base.__name__ for base in model_class.__bases__ if issubclass(base, nn.Module)),
        head=head,
        present=present,
        missing=missing,
        note=note,
        summary=summary(model_class),
    )
