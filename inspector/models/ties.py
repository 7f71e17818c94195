"""Which names a transformers class ties, and which it would."""

from __future__ import annotations

import copy

from torch import nn
from transformers import PreTrainedModel


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
            hypothetical = copy.copy(part)  # shallow: the module at hand keeps its config
            hypothetical.config = copy.copy(part.config)
            hypothetical.config.tie_word_embeddings = True
            start = f"{prefix}." if prefix else ""
            ties = hypothetical.get_expanded_tied_weights_keys()
            found |= {f"{start}{name}": f"{start}{source}" for name, source in ties.items()}
    return found
