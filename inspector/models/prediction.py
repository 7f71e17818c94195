"""Tell which tensors that a class does not load are its layers for multi-token prediction."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspector.store.prediction import APART, BLOCK, declared_layers, layers_past
from inspector.store.readers.levels import read_setting

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class MultiTokenTensors:
    """Tensors that predict several tokens ahead: servers use them, and the class leaves them out."""

    names: tuple[str, ...]  # sorted
    layers: tuple[int, ...]  # past the model's own; empty where they have names of their own
    key: str  # the setting that declares them; "": the class lists them among what it does not load
    count: int  # what the setting says


def find_prediction(
    model: PreTrainedModel, unused: Iterable[str], names: Collection[str], config: Mapping[str, Any]
) -> MultiTokenTensors | None:
    """Find the tensors of such layers that config.json declares, or that the class itself lists.

    Args:
        unused: Names of tensors that have no place in the model.
        names: Of all tensors of the file.
        config: The rebuilt config.json.
    """
    key, count = declared_layers(config) or ("", 0)
    own = read_setting(model.config, "num_hidden_layers").value
    own = own if isinstance(own, int) else len(names)
    past = layers_past(names, own, count) if key else frozenset()
    listed = [re.compile(each) for each in model._keys_to_ignore_on_load_unexpected or ()]

    def belongs(name: str) -> bool:
        ignored = any(each.search(name) for each in listed)
        number = _layer(name)
        if APART.search(name):
            return ignored or bool(key)
        return number in past or (ignored and number >= own)

    found = sorted(name for name in unused if belongs(name))
    if not found:
        return None
    layers = {_layer(name) for name in found if not APART.search(name)}
    return MultiTokenTensors(tuple(found), tuple(sorted(layers)), key, count)


def _layer(name: str) -> int:
    """The number of the layer that a tensor is part of; -1: of none."""
    match = BLOCK.search(name)
    return int(match[1]) if match else -1
