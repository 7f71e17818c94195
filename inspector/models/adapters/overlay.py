"""A base model with an adapter on it: the bytes that a merge would write, computed where they are read.

Whatever reads numbers asks a manifest for the bytes of a file. This one gives the base's, and where a tensor lies that
the adapter changes, the sum, rounded to the dtype that the base stores. Every question is answered by that, and nothing
is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial

import numpy as np
import torch

from inspector.errors import NotInCheckpointError
from inspector.models.adapters.deltas import Delta
from inspector.models.adapters.names import Names, tied_with
from inspector.models.adapters.parts import AdapterChanges, read_parts
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store import pairs
from inspector.store.manifests.columns import TensorInfo
from inspector.store.manifests.manifest import Manifest
from inspector.store.readers.ranges import Bytes
from inspector.text import shape_text, some

BLOCK = 1 << 20  # numbers that are summed at once
NAMED = 3  # names in a sentence
FLOATS = ("float32", "bfloat16", "float16", "float64")
UNREADABLE = (
    "{adapter} has tensors whose effect on a weight is not computed here ({names}): merge it, and open the result."
)
LACKING = "{adapter} changes {name}, which {base} does not store: give the model that the adapter was trained on."
NOT_PLAIN = "{base} stores {name} {how}, so no change can be added to it: give the model as it was before that."
CODES, OTHER, TURNED = "as codes", "as {dtype}", "in another order than its shape"
UNLIKE = (
    "{base} stores {name} {how}, so no change of the model can be added where it lies: save {base} with transformers, "
    "and give that."
)
RAISED, REORDERED = "with 1 added to each number", "with its rows in another order than the model"
OPEN_BASE = "Open {base} alone."
SECOND = "{base} has an adapter already: merge that one, open the result, and put {adapter} on it."
RESIZED = (
    "{adapter} brings {name} in the shape {given}, and {base} stores {stored}: its vocabulary was resized. Merge it, "
    "and open the result."
)
UNTIES = (
    "{adapter} brings {name} whole, which {base} ties to {tied}: with it, the two are no longer one. Merge it, and "
    "open the result."
)
TWICE = "{adapter} changes {name} twice, by two names of one tensor in {base}: merge it, and open the result."
RESIDUAL = ("pissa", "olora", "corda", "loftq", "lora_ga")
RESIDUAL_BASE = (
    "{adapter} was initialized from the base's own weights ({how}). Unless it was converted to LoRA when it was saved, "
    "it belongs to the residual model that was saved with it, and with {base} the numbers are wrong."
)

Sum = Callable[[slice, torch.Tensor], torch.Tensor]  # rows of the base and what it stores -> what is there instead


@dataclass(frozen=True, slots=True)
class Patch:
    """One stored tensor that is not the base's."""

    tensor: TensorInfo  # of the base, its rows one after the other
    summed: Sum

    @property
    def rows(self) -> int:
        """Of the tensor; of what has no axis, 1."""
        return self.tensor.shape[0] if self.tensor.shape else 1

    def write(self, data: np.ndarray, begin: int, read: Callable[[int, int], np.ndarray]) -> None:
        """Put its numbers into bytes of the file.

        Args:
            data: The bytes, which are changed.
            begin: Of the first in the file.
            read: Reads the base's bytes from one place to another.
        """
        line = self.tensor.nbytes // max(1, self.rows)
        first, last = max(begin, self.tensor.begin), min(begin + len(data), self.tensor.begin + self.tensor.nbytes)
        if first >= last:
            return
        place = self.tensor.begin
        start, stop = (first - place) // line, -(-(last - place) // line)
        count = max(1, BLOCK * self.rows // max(1, self.tensor.nbytes))
        for row in range(start, stop, count):
            at = slice(row, min(row + count, stop))
            here = place + at.start * line, place + at.stop * line
            whole = self._made(at, read(*here))
            inside = max(first, here[0]), min(last, here[1])
            data[inside[0] - begin : inside[1] - begin] = whole[inside[0] - here[0] : inside[1] - here[0]]

    def _made(self, at: slice, stored: np.ndarray) -> np.ndarray:
        dtype = getattr(torch, self.tensor.dtype)
        before = torch.from_numpy(stored).view(dtype).reshape(at.stop - at.start, -1)
        after = self.summed(at, before).to(dtype).reshape(-1)
        return after.contiguous().view(torch.uint8).numpy()


class AdaptedBytes:
    """The bytes of a base's file, with an adapter's change in them."""

    def __init__(self, base: Bytes, patches: Sequence[Patch]) -> None:
        self._base, self._patches = base, patches
        self.need, self.check, self.close = base.need, base.check, base.close

    def into(self, begin: int, place: memoryview) -> None:
        """Read as many bytes as a place takes."""
        self._base.into(begin, place)
        self._patch(np.frombuffer(place, np.uint8), begin)

    def map(self, begin: int, end: int) -> np.ndarray:
        """Map bytes into memory, privately; the pages that the adapter changes are this process's own."""
        mapped = self._base.map(begin, end)
        self._patch(mapped, begin)
        return mapped

    def _patch(self, data: np.ndarray, begin: int) -> None:
        for patch in self._patches:
            patch.write(data, begin, self._read)

    def _read(self, begin: int, end: int) -> np.ndarray:
        data = np.empty(end - begin, np.uint8)
        self._base.need([(begin, end)])
        self._base.into(begin, data.data)
        return data


@dataclass(frozen=True)
class AdaptedManifest(Manifest):
    """What a base with an adapter holds: the base's headers, and other numbers."""

    patches: Mapping[str, tuple[Patch, ...]] = field(default_factory=dict, repr=False, compare=False)  # by file

    @property
    def summed(self) -> frozenset[str]:
        """The tensors that the adapter changes; see `Manifest`."""
        return frozenset(patch.tensor.name for each in self.patches.values() for patch in each)

    def bytes_of(self, name: str) -> Bytes:
        """The bytes of a file; see `Manifest`."""
        plain = super().bytes_of(name)
        return AdaptedBytes(plain, self.patches[name]) if name in self.patches else plain


def adapted(base: StagedCheckpoint, adapter: StagedCheckpoint) -> StagedCheckpoint:
    """A base with an adapter on it, as merging would make it; nothing is written.

    Raises:
        NotInCheckpointError: If one of them is not what its place needs, or the adapter does not fit the base.
    """
    base.refuse_adapter()
    if isinstance(base.manifest, AdaptedManifest):
        raise NotInCheckpointError(SECOND.format(base=base.name, adapter=adapter.name))
    parts = read_parts(adapter)
    if never := parts.never_merged(adapter.name):
        raise NotInCheckpointError(f"{never} {OPEN_BASE.format(base=base.name)}")
    if parts.unreadable:
        raise NotInCheckpointError(UNREADABLE.format(adapter=adapter.name, names=some(parts.unreadable, NAMED)))
    patches: defaultdict[str, list[Patch]] = defaultdict(list)
    for patch in _Overlay(base, adapter, parts).patches():
        if any(_overlap(patch.tensor, each.tensor) for each in patches[patch.tensor.file]):
            raise NotInCheckpointError(TWICE.format(adapter=adapter.name, base=base.name, name=patch.tensor.name))
        patches[patch.tensor.file].append(patch)
    manifest = pairs.both(base.manifest, adapter.manifest)
    held = {each.name: getattr(manifest, each.name) for each in fields(Manifest)}
    told = {
        "name": pairs.title([base.name, adapter.name]),
        "warnings": (*manifest.warnings, *_warnings(base, adapter, parts)),
    }
    found = AdaptedManifest(**held | told, patches={name: tuple(each) for name, each in patches.items()})
    return StagedCheckpoint(found, settings=base.settings)


def _overlap(one: TensorInfo, other: TensorInfo) -> bool:
    return one.begin < other.begin + other.nbytes and other.begin < one.begin + one.nbytes


def _warnings(base: StagedCheckpoint, adapter: StagedCheckpoint, parts: AdapterChanges) -> Iterator[str]:
    how = parts.settings.get("init_lora_weights")
    if isinstance(how, str) and how.lower().startswith(RESIDUAL):
        yield RESIDUAL_BASE.format(adapter=adapter.name, base=base.name, how=how)


@dataclass(frozen=True)
class _Overlay:
    """What is put in the place of which tensor."""

    base: StagedCheckpoint
    adapter: StagedCheckpoint
    parts: AdapterChanges

    def patches(self) -> Iterator[Patch]:
        """One for each stored tensor that changes.

        Raises:
            NotInCheckpointError: If one does not fit the base.
        """
        changed = {change.weight for change in self.parts.changes}
        for change in self.parts.changes:
            for tensor in self._stored(change.weight):
                given = self._given(change.weight, tensor) if change.weight in self.parts.replaced else None
                rows = partial(_mapped_rows, self.base, tensor.name) if given is None else partial(_rows_of, given)
                delta = Delta(self.adapter, change, self.base, tensor.shape, rows)
                yield Patch(tensor, partial(_add, delta, given))
        yield from self._biases()
        for name in (each for each in self.parts.replaced if each not in changed):
            self._refuse_untying(name)
            tensor = self._plain(name, self._names.find(name))
            yield Patch(tensor, partial(_replace, self._given(name, tensor)))

    def _biases(self) -> Iterator[Patch]:
        for name, (bias, scale) in self.parts.biases.items():
            for tensor in self._stored(name):
                yield Patch(tensor, partial(_add_bias, self._numbers(bias, tensor), scale))
        for change in self.parts.changes:
            scales, bias = change.parts.get("ia3_l"), f"{change.module}.bias"
            if scales is None or scales.shape[-1] != 1:
                continue  # of inputs, so not of what is added to outputs
            for tensor in self._stored(bias) if self._names.find(bias) else ():
                yield Patch(tensor, partial(_scale, self._numbers(scales, tensor)))

    def _stored(self, name: str) -> list[TensorInfo]:
        """The stored tensors of one parameter: more than one where the base stores what it ties more than once."""
        found = [*dict.fromkeys(filter(None, map(self._names.find, (name, *tied_with(self.base, name)))))]
        tensors = [self._plain(name, found[0] if found else None)]
        tensors += [self._plain(name, each) for each in found[1:] if self._are_one(found[0], each)]
        return list({(tensor.file, tensor.begin): tensor for tensor in tensors}.values())

    def _are_one(self, first: str, other: str) -> bool:
        """Whether loading the base ties two tensors that it stores: it does if they are equal."""
        one, two = (self.base.read([each])[each] for each in (first, other))
        return one.shape == two.shape and torch.equal(one, two.to(one.dtype))

    @cached_property
    def _names(self) -> Names:
        return Names(self.base.tensors.names)

    def _plain(self, name: str, found: str | None) -> TensorInfo:
        """The header of a stored tensor that numbers can be added to."""
        told = {"adapter": self.adapter.name, "base": self.base.name, "name": found or name}
        if found is None:
            raise NotInCheckpointError(LACKING.format(**told))
        tensor = self.base.manifest.by_name.get(found)
        if tensor is None or found in self.base.quantized or found in self.base.unread.codes:
            raise NotInCheckpointError(NOT_PLAIN.format(**told, how=CODES))
        if found in self.base.changed:
            how = RAISED if self.base.changed[found].options.get("more") else REORDERED
            raise NotInCheckpointError(UNLIKE.format(**told, how=how))
        if tensor.dtype not in FLOATS:
            raise NotInCheckpointError(NOT_PLAIN.format(**told, how=OTHER.format(dtype=tensor.dtype)))
        if tensor.strides != torch.empty(tensor.shape, device="meta").stride():
            raise NotInCheckpointError(NOT_PLAIN.format(**told, how=TURNED))
        return tensor

    def _given(self, name: str, tensor: TensorInfo) -> torch.Tensor:
        """What the adapter brings in the place of a tensor."""
        return self._numbers(self.parts.replaced[name], tensor).reshape(tensor.shape)

    def _numbers(self, given: TensorInfo, tensor: TensorInfo) -> torch.Tensor:
        """Numbers of the adapter, as many as a tensor of the base has."""
        found = self.adapter.read([given.name])[given.name]
        squeezed = [tuple(size for size in shape if size != 1) for shape in (given.shape, tensor.shape)]
        if squeezed[0] != squeezed[1]:
            shapes = {"given": shape_text(given.shape), "stored": shape_text(tensor.shape)}
            told = {"adapter": self.adapter.name, "base": self.base.name, "name": tensor.name}
            raise NotInCheckpointError(RESIZED.format(**told, **shapes))
        return found

    def _refuse_untying(self, name: str) -> None:
        if tied := tied_with(self.base, name):
            told = {"adapter": self.adapter.name, "base": self.base.name, "name": name, "tied": tied[0]}
            raise NotInCheckpointError(UNTIES.format(**told))


def _mapped_rows(base: StagedCheckpoint, name: str, at: slice | torch.Tensor) -> torch.Tensor:
    return _rows_of(base.read([name])[name], at)


def _rows_of(tensor: torch.Tensor, at: slice | torch.Tensor) -> torch.Tensor:
    return tensor.flatten(1)[at].double()


def _add(delta: Delta, given: torch.Tensor | None, at: slice, before: torch.Tensor) -> torch.Tensor:
    return delta.summed(at, before if given is None else given.flatten(1)[at])


def _add_bias(bias: torch.Tensor, scale: float, at: slice, before: torch.Tensor) -> torch.Tensor:
    return before.float() + scale * bias.reshape(-1)[at].reshape(before.shape).float()


def _scale(scales: torch.Tensor, at: slice, before: torch.Tensor) -> torch.Tensor:
    return before.float() * scales.reshape(-1)[at].reshape(before.shape).float()


def _replace(given: torch.Tensor, at: slice, before: torch.Tensor) -> torch.Tensor:
    return (given[at] if given.dim() else given).reshape(before.shape)
