"""Find the weights that a checkpoint stores as codes, and tell them from those that it does not."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from inspector.errors import CheckpointError
from inspector.models.quantized.companions import Unread, find_unread
from inspector.models.quantized.formats import CONVENTIONS, FLOATS, Codes, UnreadableError, blocks
from inspector.store.configs import BLOCKS
from inspector.store.foreign.gguf_models import is_raised, swapped_heads
from inspector.store.foreign.mistral import turned_heads
from inspector.store.manifests.columns import Kind, TensorInfo, Tensors
from inspector.store.manifests.documents import collector_paused
from inspector.store.manifests.manifest import Manifest
from inspector.store.readers.levels import read_setting
from inspector.store.readers.safetensors import contiguous_strides

ITEMSIZES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of FLOATS
CONV1D = frozenset({"gpt2", "openai-gpt", "imagegpt", "decision_transformer"})  # keep (in, out)


PLAIN = "plain"  # the kind of what is no code, and not in the model's order all the same


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


class WeightLayout(NamedTuple):
    """How a checkpoint's weights are stored."""

    quantized: dict[str, Quantized]  # by the weight's name
    tensors: Tensors  # each quantized weight once and as what it stands for
    unread: Unread  # the codes that nobody here can read as numbers
    changed: dict[str, Quantized]  # those, and plain numbers that a GGUF file has in another order, or with 1 added


# What was found last: who opens a checkpoint prepares the questions about it, whose manifest has the server's digests.
_KNOWN: deque[tuple[Manifest, WeightLayout]] = deque(maxlen=1)


@collector_paused()
def find_layout(manifest: Manifest) -> WeightLayout:
    """Find out how the weights of a checkpoint are stored."""
    for known, layout in tuple(_KNOWN):
        if known.tensors is manifest.tensors and _says(known) == _says(manifest):
            return layout
    claimed = find_quantized(manifest)
    unread = find_unread(manifest.tensors, {name: each.parts for name, each in claimed.items()})
    found = {name: each for name, each in claimed.items() if each.parts["codes"].name not in unread.codes}
    layout = WeightLayout(found, logical_tensors(manifest, found), unread, found | find_turned(manifest, found))
    _KNOWN.append((manifest, layout))
    return layout


def _says(manifest: Manifest) -> tuple[Any, ...]:
    """What a layout depends on beside the tensors: some conventions keep a size in a file's bytes."""
    files = [(file.path, file.stamp) if file.stamp else (file.name, file.digest) for file in manifest.files]
    return manifest.config, manifest.quantization, files


def find_quantized(manifest: Manifest) -> dict[str, Quantized]:
    """Find the weights whose codes can be read, name of the weight -> how.

    A weight whose parts contradict each other, or allow two readings, is left out.
    """
    tensors = manifest.by_name
    config = manifest.config or {}
    found: dict[str, Quantized] = {}
    endings = tuple(CONVENTIONS)  # no name has two
    said = read_setting(config, "dtype", "torch_dtype").value
    dtype = str(said) if said in FLOATS else ""
    conv1d = config.get("model_type") in CONV1D
    for name, block in manifest.quantization.get(BLOCKS, {}).items():
        with suppress(UnreadableError, KeyError):
            shape, kind, scheme, parts, options, *_ = blocks(name, block, tensors)
            options = {**options, **_turning(manifest, name, shape)}
            found[name] = Quantized(name, shape, dtype or "float32", kind, scheme, parts, options)
    for name in tensors:
        if (
            not name.endswith(endings) or name in found
        ):  # one look at most names, of which there may be a hundred thousand
            continue
        ending = next(filter(name.endswith, endings))
        instead, read = CONVENTIONS[ending]
        base = name.removesuffix(ending)
        try:
            codes = read(base, tensors, manifest)
        except (UnreadableError, KeyError):
            continue
        if conv1d and _allows_two_readings(codes):
            continue
        # Only what quantizes linear layers alone turns a Conv1D into one.
        flipped = codes.flipped or (conv1d and codes.kind != "scaled")
        shape, kind, scheme, parts, options, *_ = codes
        weight = base + instead
        found[weight] = Quantized(weight, shape, dtype or _dtype(codes), kind, scheme, parts, options, flipped)
    return found


def find_turned(manifest: Manifest, known: Collection[str]) -> dict[str, Quantized]:
    """Find the plain numbers of a GGUF or Mistral's file that are not as the model has them, name -> how to read them.

    Args:
        known: What is read as codes.
    """
    if manifest.config is None or not (manifest.is_gguf or manifest.translated.names):
        return {}
    floats = (each for each in manifest.tensors if each.dtype in FLOATS and each.name not in known)
    turned = ((each, _turning(manifest, each.name, each.shape)) for each in floats)
    return {
        each.name: Quantized(each.name, each.shape, each.dtype, PLAIN, each.dtype, {"codes": each}, options)
        for each, options in turned
        if options
    }


def _turning(manifest: Manifest, name: str, shape: tuple[int, ...]) -> dict[str, int]:
    """What the numbers of a tensor have undergone: "heads" whose rows have another order, "more" that was added."""
    config = manifest.config
    if config is None or not shape:
        return {}
    if manifest.is_gguf and is_raised(config, name):
        return {"more": 1}
    theirs = manifest.translated.names.get(name, name)
    heads = swapped_heads(config, name) if manifest.is_gguf else turned_heads(config, name, theirs)
    return {"heads": heads} if heads and not shape[0] % (2 * heads) else {}


def _allows_two_readings(codes: Codes) -> bool:
    """Whether a square matrix (in, out) has one scale for each of its inputs, or of its outputs."""
    return codes.kind == "scaled" and codes.parts["scale"].shape == codes.shape[:1] == codes.shape[1:]


def logical_tensors(manifest: Manifest, found: Mapping[str, Quantized]) -> Tensors:
    """The headers of a checkpoint, each quantized weight once and as what it stands for."""
    if not found:
        return manifest.tensors
    stored = manifest.tensors
    parts = {part.name for each in found.values() for part in each.parts.values()}
    weights = {each.parts["codes"].name: each for each in found.values()}
    kinds: dict[Kind, int] = {}
    known: dict[Any, int] = {}  # what tells the kind of a tensor -> that kind
    names, places, begins = [], [], []
    shared: dict[int, tuple[str, int]] = {}
    for number, (name, place, begin) in enumerate(zip(stored.names, stored.places, stored.begins, strict=True)):
        weight = weights.get(name)
        if weight is None and name in parts:
            continue
        told = (place, weight.dtype, weight.shape, weight.flipped) if weight else place
        if told not in known:
            kind = Kind(*weight.info[1:5], weight.info.nbytes) if weight else stored.kinds[place]
            known[told] = kinds.setdefault(kind, len(kinds))
        if number in stored.shared or (weight and weight.name != name):
            shared[len(names)] = stored[number][7:9]
        names.append(weight.name if weight else name)
        places.append(known[told])
        begins.append(begin)
    return Tensors(tuple(kinds), names, places, begins, shared)


def refuse_codes(name: str, unread: Unread, wanted: Collection[str] | None = None) -> None:
    """Compute nothing from codes as if they were numbers.

    Args:
        wanted: The tensors that would be used; None: all.

    Raises:
        CheckpointError: If any of them are codes that cannot be read.
    """
    if codes := next((each for each in unread.codes if wanted is None or each in wanted), None):
        raise CheckpointError(codes_refusal(name, unread, codes))


def codes_refusal(name: str, unread: Unread, codes: str) -> str:
    """What to say instead of computing from stored codes."""
    return (
        f"{describe_codes(name, unread, codes)}: only its headers are shown; use a copy in float32, bfloat16 or "
        "float16."
    )


def describe_codes(name: str, unread: Unread, codes: str) -> str:
    """Which codes cannot be read, and what is beside them."""
    companion = unread.companion(codes)
    beside = f" (with {companion} beside it)" if companion else ""
    return f"{name} stores {codes}{beside} in a quantized format that this tool does not support"


def refuse_many_numbers(name: str, found: Mapping[str, Quantized], allowed: int, *, summed: int = 0) -> None:
    """Keep numbers out of memory that take too much of it: codes, and a base's weights, can be mapped, they not.

    Args:
        name: What the checkpoint is called.
        found: The weights that are stored as codes.
        allowed: Bytes of main memory that a model may use.
        summed: Bytes of the weights that an adapter changes.

    Raises:
        CheckpointError: If they take more.
    """
    wanted = summed + sum(math.prod(each.shape) * ITEMSIZES[each.dtype] for each in found.values())
    if wanted > allowed:
        which = f"weights that the adapter changes in {name}" if summed else f"quantized weights of {name}"
        once = "once they are changed" if summed else "once dequantized"
        raise CheckpointError(
            f"The {which} take {wanted / 1e9:,.1f} GB {once}, but a model may use "
            f"{allowed / 1e9:,.1f} GB of main memory here: set INSPECTOR_MODEL_MB higher; its embeddings and a "
            "comparison read a part at a time and need less."
        )


def _dtype(codes: Codes) -> str:
    """The original dtype, if the layout records it and config.json does not."""
    scale = codes.parts.get("scale")
    said = (codes.dtype, scale.dtype if scale else "")
    return next((each for each in said if each in FLOATS), "float32")
