"""Read what other programs saved as the model's own: names, layout and settings, each change said in a sentence."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspector.errors import CheckpointError
from inspector.store.configs import keep_settings
from inspector.store.foreign import mistral
from inspector.store.foreign.gguf_models import NOT_READ_AS_MODEL, read_as_model
from inspector.store.foreign.gguf_settings import NoModelError
from inspector.store.foreign.known_names import guess_class
from inspector.store.foreign.model_types import guess_model_type
from inspector.store.foreign.nanogpt import NO_BIAS, SAID, absent_biases, is_nanogpt, nanogpt_config, transposed
from inspector.store.foreign.wrappers import describe_wrappers, unwrapped
from inspector.store.manifests.columns import TensorInfo, Tensors
from inspector.store.manifests.findings import NO_MODEL, FileProblem
from inspector.store.manifests.manifest import Translated
from inspector.store.names import PARAMS
from inspector.store.readers.ggml import as_stored
from inspector.store.sizes import refuse_wrong_sizes


@dataclass(frozen=True, slots=True)
class Translation:
    """The tensors and settings of a checkpoint as a model has them."""

    tensors: Tensors
    config: dict[str, Any] | None
    translated: Translated = field(default_factory=Translated)
    said: tuple[str, ...] = ()  # what was done, a sentence each
    findings: tuple[FileProblem, ...] = ()  # each detail is among them


def translate(tensors: Tensors, config: dict[str, Any] | None, settings: Mapping[str, Any]) -> Translation:
    """Find out which program saved a checkpoint, and read it as the model's own.

    Args:
        tensors: As the files have them.
        config: config.json, rebuilt; None: there is none.
        settings: What lies beside the weights: nanoGPT's `model_args` in a file of PyTorch's, Mistral's params.json.

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
    elif config is None and settings and (names := mistral.mistral_names(found.names)):
        renamed = found.renamed(names)
        if why := mistral.why_not(settings) or _contradiction(mistral.mistral_config(settings, found.numbers), renamed):
            said.append(mistral.NOT_READ.format(why=why))
        else:
            config = keep_settings(mistral.mistral_config(settings, found.numbers))
            said.append(mistral.describe_mistral(settings, names))
            found, own = renamed, {file: names[own.get(file, file)] for file in tensors.names}
    elif config is not None and not config.get("model_type"):
        model_type, why = guess_model_type(config, found.numbers)
        if why:
            config = config | {"model_type": model_type}
            said.append(why)
    if config is None and (guess := guess_class(found)):
        said.append(guess)
    return Translation(found, config, Translated(_other_names(own), zeros), tuple(said))


def translate_gguf(
    tensors: Tensors, metadata: Mapping[str, Any], blocks: Mapping[str, str], files: Mapping[str, Path]
) -> Translation:
    """Read a GGUF file as the model of transformers that it is, or as tensors alone where none is known.

    Args:
        tensors: As the files have them.
        metadata: Of the file, or of the first of several.
        blocks: The types of tensors that are stored as blocks.
        files: Where each file is, by name.

    Raises:
        CheckpointError: If the settings cannot be a configuration's.
    """

    def read_frequencies(tensor: TensorInfo) -> tuple[float, ...]:
        with files[tensor.file].open("rb") as file:
            file.seek(tensor.begin)
            return struct.unpack(f"<{tensor.shape[0]}f", file.read(tensor.nbytes))

    try:
        model = read_as_model(metadata, as_stored(tensors, blocks), read_frequencies)
        renamed, config = tensors.renamed(model.names), keep_settings(model.config)
        own_blocks = {model.names[name]: block for name, block in blocks.items()}
        _refuse_wrong_sizes(config, as_stored(renamed, own_blocks))
    except NoModelError as error:
        said = NOT_READ_AS_MODEL.format(why=error)
        finding = FileProblem(tensors[0].file, NO_MODEL, len(tensors), said)
        return Translation(tensors, None, said=(said,), findings=(finding,))
    return Translation(renamed, config, Translated(_other_names(model.names)), (model.said,))


def _contradiction(config: dict[str, Any], tensors: Tensors) -> str:
    """What of Mistral's settings its tensors cannot fill, in words; "" if they can."""
    try:
        refuse_wrong_sizes(config, tensors)
    except CheckpointError as error:
        return str(error).replace("config.json", PARAMS).removesuffix(".")
    return ""


def _refuse_wrong_sizes(config: dict[str, Any], tensors: Tensors) -> None:
    try:
        refuse_wrong_sizes(config, tensors)
    except CheckpointError as error:
        raise NoModelError(str(error).replace("config.json", "its metadata").removesuffix(".")) from error


def _other_names(own: Mapping[str, str]) -> dict[str, str]:
    return {mine: theirs for theirs, mine in own.items() if theirs != mine}
