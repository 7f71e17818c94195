"""Which names a transformers class ties, and which it would."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from inspector.store.readers.levels import parts_of, stated, text_levels

FLAG = "tie_word_embeddings"


@dataclass(frozen=True, slots=True)
class TieFlag:
    """What decides whether a class ties its output layer to the embeddings."""

    level: str  # of config.json that the class reads: "" is the top
    value: bool  # for the class; T5's takes no false
    said: bool | None  # by config.json at that level
    against: str | None  # another level of the text's settings where config.json says the opposite
    config_class: str  # that gives the default


def find_flag(model: PreTrainedModel, config: PreTrainedConfig, values: Mapping[str, Any]) -> TieFlag:
    """Find the level that a class reads, by asking which of its parts would tie.

    Args:
        config: Of the checkpoint; the model's own may be a part of it.
        values: The rebuilt config.json.
    """
    part = tying_part(model).config
    level = next((level for level, each in parts_of(config) if type(each) is type(part)), "")
    value, found = bool(getattr(part, FLAG, False)), stated(values, FLAG)
    others = (each for each, _ in text_levels(config) if each != level and found.get(each) is (not value))
    return TieFlag(level, value, found.get(level), next(others, None), type(part).__name__)


def tying_part(model: PreTrainedModel) -> PreTrainedModel:
    """The part of a model whose config decides on ties: the outermost that would tie anything."""
    for _, part in model.named_modules():
        if isinstance(part, PreTrainedModel) and _would_tie(part):
            return part
    return model


def _would_tie(part: PreTrainedModel) -> dict[str, str]:
    """What a part would tie if its config said so."""
    hypothetical = copy.copy(part)  # shallow: the module at hand keeps its config
    hypothetical.config = copy.copy(part.config)
    hypothetical.config.tie_word_embeddings = True
    return hypothetical.get_expanded_tied_weights_keys()


def declared_ties(module: nn.Module) -> dict[str, str]:
    """Name -> the name whose tensor it is meant to be, as the config and the classes declare."""
    if not isinstance(module, PreTrainedModel):
        return {}
    return module.get_expanded_tied_weights_keys(all_submodels=True)


def kept_ties(module: nn.Module) -> dict[str, str]:
    """Those of them that held when the weights were loaded: the file did not contradict them."""
    return dict(getattr(module, "all_tied_weights_keys", {}))


def possible_ties(module: nn.Module) -> dict[str, str]:
    """The same, as the classes would declare it if the config said `tie_word_embeddings`."""
    found: dict[str, str] = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        if isinstance(part, PreTrainedModel):
            start = f"{prefix}." if prefix else ""
            ties = _would_tie(part)
            found |= {f"{start}{name}": f"{start}{source}" for name, source in ties.items()}
    return found
