"""Read the metadata of GGUF files, and how many bits each of their tensors takes."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from inspector.analyses.overview.result_gguf import GgufFacts
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.configs import BLOCKS
from inspector.store.readers.ggml import as_stored
from inspector.store.readers.gguf import Array, read_gguf
from inspector.text import plural

MOST_VALUES = 16  # of an array that are shown
MOST_TEXT = 20_000  # characters: chat templates have fewer


def gguf_facts(checkpoint: StagedCheckpoint) -> GgufFacts | None:
    """What the headers of GGUF files say; None where the checkpoint has none.

    Raises:
        CheckpointError: If a file has changed since it was opened.
    """
    files = [file for file in checkpoint.manifest.files if file.format == "gguf"]
    if not files:
        return None
    metadata: dict[str, str] = {}
    for file in files:  # of several, the first has all that is said of the model
        said = read_gguf(file.path, file.name).settings
        metadata |= {key: _text(value) for key, value in said.items() if key not in metadata}
    types: Counter[str] = Counter()
    stored: dict[str, tuple[str, float]] = {}
    nbytes = 0
    for tensor in as_stored(checkpoint.manifest.tensors, checkpoint.manifest.quantization.get(BLOCKS, {})):
        numbers = math.prod(tensor.shape)
        types[tensor.dtype] += numbers
        nbytes += tensor.nbytes
        if numbers:
            in_file = checkpoint.manifest.translated.names.get(tensor.name, tensor.name)
            stored[in_file] = tensor.dtype, 8 * tensor.nbytes / numbers
    return GgufFacts(metadata, 8 * nbytes / max(1, types.total()), dict(types.most_common()), stored)


def _text(value: Any) -> str:
    if isinstance(value, Array):
        return plural(value.count, "value")
    if isinstance(value, tuple):
        more = f", … ({len(value):,} values)" if len(value) > MOST_VALUES else ""
        return ", ".join(map(_text, value[:MOST_VALUES])) + more
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)[:MOST_TEXT]
