"""Find the weights that a checkpoint stores as codes, and tell them from those that it does not."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from inspector.errors import CheckpointError
from inspector.models.quantized.formats import CONVENTIONS, FLOAT8, FLOATS, Codes, UnreadableError
from inspector.store.manifests.columns import TensorInfo, Tensors
from inspector.store.manifests.documents import collector_paused
from inspector.store.manifests.manifest import Manifest
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
        shape = (*self.shape[:-2], *reversed(self.shape[-2:])) if self.flipped else self.shape
        return TensorInfo(self.name, self.dtype, shape, contiguous_strides(shape), *self.parts["codes"][4:])


@collector_paused()
def find_quantized(manifest: Manifest) -> dict[str, Quantized]:
    """Find the weights whose codes can be read, name of the weight -> how.

    A weight whose parts contradict each other, or allow two readings, is left out.
    """
    tensors = manifest.by_name
    config = manifest.config or {}
    found: dict[str, Quantized] = {}
    endings = tuple(CONVENTIONS)  # no name has two
    said = (config.get("dtype"), config.get("torch_dtype"))
    dtype = next((str(each) for each in said if each in FLOATS), "")
    conv1d = config.get("model_type") in CONV1D
    for name in tensors:
        if not name.endswith(endings):  # one look at most names, of which there may be a hundred thousand
            continue
        ending = next(filter(name.endswith, endings))
        instead, read = CONVENTIONS[ending]
        base = name.removesuffix(ending)
        try:
            codes = read(base, tensors, manifest)
        except (UnreadableError, KeyError):
            continue
        # Only what quantizes linear layers alone turns a Conv1D into one.
        flipped = codes.flipped or (conv1d and codes.kind != "scaled")
        shape, kind, scheme, parts, options, *_ = codes
        weight = base + instead
        found[weight] = Quantized(weight, shape, dtype or _dtype(codes), kind, scheme, parts, options, flipped)
    return found


@collector_paused()
def logical_tensors(manifest: Manifest, found: Mapping[str, Quantized]) -> Tensors:
    """The headers of a checkpoint, each quantized weight once and as what it stands for."""
    if not found:
        return manifest.tensors
    parts = _parts(found)
    return Tensors.of(
        weight.info if weight else tensor
        for tensor in manifest.tensors
        if (weight := parts.get(tensor.name)) or tensor.name not in parts
    )


def _parts(found: Mapping[str, Quantized]) -> dict[str, Quantized | None]:
    """What is stored of quantized weights by name; of the codes alone the weight that they stand for."""
    parts: dict[str, Quantized | None] = {}
    for each in found.values():
        for part in each.parts.values():
            parts.setdefault(part.name, None)
    return parts | {each.parts["codes"].name: each for each in found.values()}


@collector_paused()
def unread_codes(manifest: Manifest, found: Mapping[str, Quantized]) -> tuple[str, ...]:
    """The stored tensors of codes that nobody here can read as numbers, in file order.

    Args:
        manifest: Of the checkpoint.
        found: The weights whose codes can be read.
    """
    stored, parts = manifest.by_name, _parts(found)
    return tuple(
        tensor.name
        for tensor in manifest.tensors
        if len(tensor.shape) > 1 and tensor.name not in parts and _holds_codes(tensor, stored)
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


def _dtype(codes: Codes) -> str:
    """The dtype that the weight had before, where config.json does not say, as far as anybody says."""
    scale = codes.parts.get("scale")
    said = (codes.dtype, scale.dtype if scale else "")
    return next((each for each in said if each in FLOATS), "float32")
