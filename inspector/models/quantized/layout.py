"""Find the weights that a checkpoint stores as codes, and tell them from those that it does not."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from inspector.errors import CheckpointError
from inspector.models.quantized.formats import CONVENTIONS, FLOAT8, FLOATS, Codes, UnreadableError
from inspector.store.manifests.documents import collector_paused
from inspector.store.manifests.manifest import Manifest, TensorInfo
from inspector.store.readers.safetensors import contiguous_strides

# What stands in the place of a ".weight" and is no number of it.
PACKED = (".qweight", ".weight_packed", ".W_q")
ITEMSIZES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of FLOATS
CONV1D = frozenset({"gpt2", "openai-gpt", "imagegpt", "decision_transformer"})  # keep (in, out)


class Quantized(NamedTuple):
    """A weight that is stored as codes, and what turns them into numbers; a tuple, as TensorInfo is."""

    name: str  # of the weight, as a model calls it
    shape: tuple[int, ...]  # (out, in), with the experts of a mixture in front
    dtype: str  # of the floats that it is read as when a model runs
    kind: str  # a key of codes.OPENERS
    scheme: str  # a few words: "4-bit codes (GPTQ), groups of 128"
    parts: Mapping[str, TensorInfo]  # "codes", "scale", ... -> what is stored
    options: Mapping[str, Any]  # what else codes.OPENERS need to know
    flipped: bool = False  # True: the model's own weight is the transpose, (..., in, out)

    @property
    def info(self) -> TensorInfo:
        """A header as if the numbers were stored plainly, in the place of the codes."""
        *before, rows, columns = self.shape
        shape = (*before, columns, rows) if self.flipped else self.shape
        return TensorInfo(self.name, self.dtype, shape, contiguous_strides(shape), *self.parts["codes"][4:])


@collector_paused()
def find_quantized(manifest: Manifest) -> dict[str, Quantized]:
    """Find the weights whose codes can be read, name of the weight -> how.

    A weight whose parts contradict each other, or allow two readings, is left out.
    """
    tensors = manifest.by_name
    config = manifest.config or {}
    found: dict[str, Quantized] = {}
    endings = tuple(CONVENTIONS)
    for name in tensors:
        if not name.endswith(endings):  # one look at most names, of which there may be a hundred thousand
            continue
        for ending, (instead, read) in CONVENTIONS.items():
            if not name.endswith(ending):
                continue
            base = name.removesuffix(ending)
            try:
                codes = read(base, tensors, manifest)
            except (UnreadableError, KeyError):
                continue
            found[base + instead] = Quantized(
                base + instead,
                codes.shape,
                _dtype(config, codes),
                codes.kind,
                codes.scheme,
                codes.parts,
                codes.options,
                # Only what quantizes linear layers alone turns a Conv1D into one.
                flipped=codes.flipped or (codes.kind != "scaled" and config.get("model_type") in CONV1D),
            )
    return found


@collector_paused()
def logical_tensors(manifest: Manifest, found: Mapping[str, Quantized]) -> tuple[TensorInfo, ...]:
    """The headers of a checkpoint, each quantized weight once and as what it stands for."""
    parts = {part.name for each in found.values() for part in each.parts.values()}
    first = {each.parts["codes"].name: each for each in found.values()}
    return tuple(
        first[tensor.name].info if tensor.name in first else tensor
        for tensor in manifest.tensors
        if tensor.name in first or tensor.name not in parts
    )


@collector_paused()
def unread_codes(manifest: Manifest, found: Mapping[str, Quantized]) -> tuple[str, ...]:
    """The stored tensors of codes that nobody here can read as numbers, in file order."""
    read = {part.name for each in found.values() for part in each.parts.values()}
    names = {tensor.name for tensor in manifest.tensors}
    return tuple(
        tensor.name
        for tensor in manifest.tensors
        if tensor.name not in read and len(tensor.shape) > 1 and _holds_codes(tensor, names)
    )


def _holds_codes(tensor: TensorInfo, names: Collection[str]) -> bool:
    if tensor.name.endswith(PACKED):
        return True
    if tensor.name.endswith("_blocks") and tensor.dtype == "uint8":  # of gpt-oss
        return True
    if tensor.name.endswith(".weight") and not tensor.dtype.startswith(("float", "bfloat")):
        return True
    return tensor.dtype in FLOAT8 and any(each.startswith(f"{tensor.name}_scale") for each in names)


def refuse_codes(name: str, unread: Sequence[str]) -> None:
    """Compute nothing from codes as if they were numbers.

    Args:
        unread: Its tensors that would be used and cannot be read.

    Raises:
        CheckpointError: If there are any.
    """
    if unread:
        raise CheckpointError(
            f"{name} stores {unread[0]} quantized in a way that this tool cannot read: only its headers are shown; use "
            "a copy in float32, bfloat16 or float16."
        )


def refuse_many_numbers(name: str, found: Mapping[str, Quantized], allowed: int) -> None:
    """Keep the numbers of a large quantized model out of memory: its codes can be mapped, they not.

    Raises:
        CheckpointError: If they take more.
    """
    wanted = sum(math.prod(each.shape) * ITEMSIZES[each.dtype] for each in found.values())
    if wanted > allowed:
        raise CheckpointError(
            f"The quantized weights of {name} take {wanted / 1e9:,.1f} GB once dequantized, and a model may take "
            f"{allowed / 1e9:,.1f} GB of main memory here: set INSPECTOR_MODEL_MB higher; its embeddings, and a "
            "comparison, read a part at a time and need less."
        )


def _dtype(config: Mapping[str, Any], codes: Codes) -> str:
    """The dtype that the weight had before, as far as anybody says."""
    scale = codes.parts.get("scale")
    said = (config.get("dtype"), config.get("torch_dtype"), codes.dtype, scale and scale.dtype)
    return next((str(each) for each in said if each in FLOATS), "float32")
