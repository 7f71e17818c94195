"""Read what other programs saved as the model's own: names, layout and settings, each change said in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inspector.store.configs import keep_settings
from inspector.store.foreign.model_types import guess_model_type
from inspector.store.foreign.nanogpt import NO_BIAS, SAID, absent_biases, is_nanogpt, nanogpt_config, transposed
from inspector.store.foreign.wrappers import describe_wrappers, unwrapped
from inspector.store.manifests.columns import Tensors
from inspector.store.manifests.manifest import Translated


@dataclass(frozen=True, slots=True)
class Translation:
    """The tensors and settings of a checkpoint as a model has them."""

    tensors: Tensors
    config: dict[str, Any] | None
    translated: Translated = field(default_factory=Translated)
    said: tuple[str, ...] = ()  # what was done, a sentence each


def translate(tensors: Tensors, config: dict[str, Any] | None, settings: Mapping[str, Any]) -> Translation:
    """Find out which program saved a checkpoint, and read it as the model's own.

    Args:
        tensors: As the files have them.
        config: config.json, rebuilt; None: there is none.
        settings: What lies beside the weights in a file of PyTorch's: nanoGPT's `model_args`.

    Raises:
        CheckpointError: If two tensors would have the same name.
    """
    own = unwrapped(tensors.names, config)
    said = [describe_wrappers(own)] if own else []
    found = tensors.renamed(own) if own else tensors
    zeros: Mapping[str, tuple[int, ...]] = {}
    if config is None and is_nanogpt(settings, found.numbers):
        config, zeros = keep_settings(nanogpt_config(settings)), absent_biases(settings, found)
        found = transposed(found)
        said.append(SAID + NO_BIAS * bool(zeros))
    elif config is not None and not config.get("model_type"):
        model_type, why = guess_model_type(config, found.numbers)
        if why:
            config = config | {"model_type": model_type}
            said.append(why)
    names = {mine: theirs for theirs, mine in own.items() if theirs != mine}
    return Translation(found, config, Translated(names, zeros), tuple(said))
