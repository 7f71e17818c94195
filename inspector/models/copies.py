"""Compare tensors that are meant to be one: equal to the bit, or how far apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from inspector.models.tensors import StoredReader
from inspector.store.copies import equal_copies, is_packed, read_pieces, same_bytes
from inspector.store.manifests.columns import TensorInfo
from inspector.store.manifests.manifest import Manifest

BLOCK = 1 << 20  # elements compared at once
MOST_BLOCKS = 64  # of two tensors that are measured whole
SAMPLED_BLOCKS = 16  # about as many of larger ones
SAMPLE = 16  # elements that a full comparison is decided by

Pairs = Iterable[tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True, slots=True)
class Difference:
    """How far apart two tensors of one shape are."""

    max_abs: float  # largest difference of two numbers; NaN if either tensor holds one
    relative: float  # norm of the difference by the norm of the first
    cosine: float  # of the two as one long vector each, -1..1; NaN if one of them is zero
    share: float = 1.0  # of their numbers, evenly spaced, that this is of


class Copies(Protocol):
    """Named tensors that can be compared, unless their numbers are not here yet."""

    @property
    def readable(self) -> bool:
        """False: there are no numbers yet, and nothing may be asked."""
        ...

    def same(self, first: str, second: str) -> bool:
        """Whether both hold the same bytes, element for element."""
        ...

    def difference(self, first: str, second: str) -> Difference | None:
        """How far apart they are; None if their shapes differ."""
        ...

    def equal_groups(self) -> list[tuple[str, ...]]:
        """Groups of tensors in places of their own that are equal, constant ones left out."""
        ...


class StoredCopies:
    """Tensors of a checkpoint's files, read piece by piece."""

    def __init__(self, manifest: Manifest, held: Mapping[str, str], *, block: int = BLOCK) -> None:
        """Args: the manifest, model name -> name in the file of what is stored plainly, and numbers of a piece."""
        self._manifest = manifest
        self._held = held
        self._block = block
        self._compared: dict[frozenset[str], bool] = {}
        self.readable = not manifest.is_outline

    def same(self, first: str, second: str) -> bool:
        """Whether both hold the same bytes, element for element."""
        if not {first, second} <= self._held.keys():  # codes, whose bytes say nothing alone
            return False
        pair = frozenset((self._held[first], self._held[second]))
        if pair not in self._compared:  # gigabytes, maybe, and several verdicts ask
            self._compared[pair] = same_bytes(self._manifest, self._held[first], self._held[second])
        return self._compared[pair]

    def difference(self, first: str, second: str) -> Difference | None:
        """How far apart they are; None if their shapes differ, or one is stored as codes."""
        if not {first, second} <= self._held.keys():
            return None
        one, other = (self._manifest.by_name[self._held[name]] for name in (first, second))
        if one.shape != other.shape:
            return None
        if is_packed(one) and is_packed(other) and one.strides == other.strides:
            blocks = -(-math.prod(one.shape) // self._block)
            every = 1 if blocks <= MOST_BLOCKS else blocks // SAMPLED_BLOCKS
            pairs = zip(self._blocks(one, every), self._blocks(other, every), strict=True)
            return replace(measure(pairs), share=-(-blocks // every) / max(blocks, 1))
        read = StoredReader(self._manifest).read([one.name, other.name])
        return measure(_pairs(read[one.name], read[other.name], self._block))

    def equal_groups(self) -> list[tuple[str, ...]]:
        """Groups of tensors in places of their own that are equal, constant ones left out."""
        model_names = {held: name for name, held in self._held.items()}
        groups = [
            tuple(model_names[name] for name in group if name in model_names)
            for group in equal_copies(self._manifest, names=model_names)
        ]
        return [group for group in groups if len(group) > 1]

    def _blocks(self, tensor: TensorInfo, every: int) -> Iterator[torch.Tensor]:
        dtype = getattr(torch, tensor.dtype)
        for piece in read_pieces(self._manifest, tensor, count=self._block, every=every):
            yield torch.frombuffer(piece, dtype=dtype)


class LiveCopies:
    """Tensors of a module in memory."""

    readable = True

    def __init__(self, tensors: Mapping[str, torch.Tensor], searched: Sequence[str], *, block: int = BLOCK) -> None:
        """Args: tensors by name, which of them `equal_groups` searches, and numbers that are compared at once."""
        self._block = block
        self._tensors = tensors
        self._searched = searched

    def same(self, first: str, second: str) -> bool:
        """Whether both hold the same bytes, element for element."""
        return equal_bytes(self._tensors[first], self._tensors[second])

    def difference(self, first: str, second: str) -> Difference | None:
        """How far apart they are; None if their shapes differ."""
        one, other = self._tensors[first], self._tensors[second]
        if one.shape != other.shape or "meta" in (one.device.type, other.device.type):
            return None
        return measure(_pairs(one, other.to(one.device), self._block))

    def equal_groups(self) -> list[tuple[str, ...]]:
        """Groups of tensors in places of their own that are equal, constant ones left out."""
        alike: dict[tuple[object, ...], list[str]] = {}
        for name in self._searched:
            tensor = self._tensors[name]
            if _comparable(tensor):
                sample = repr(tensor.detach()[-1].flatten()[:SAMPLE].tolist())
                alike.setdefault((tensor.dtype, tensor.shape, sample), []).append(name)
        groups = []
        for names in alike.values():
            if len(names) > 1 and not _constant(self._tensors[names[0]]):
                groups += _split(names, self.same)
        return groups


def equal_bytes(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors hold the same bytes: NaNs of the same bits are equal, 0 and -0 not."""
    if (first.shape, first.dtype, first.layout) != (second.shape, second.dtype, second.layout):
        return False
    if first.device != second.device or "meta" in (first.device.type, second.device.type):
        return False
    if first.data_ptr() == second.data_ptr() and first.stride() == second.stride():
        return True
    return all(torch.equal(one.view(torch.uint8), other.view(torch.uint8)) for one, other in _pairs(first, second))


def measure(pairs: Pairs) -> Difference:
    """Measure the distance of two tensors that come in pieces, in float64."""
    largest = squared = dot = norm_first = norm_second = 0.0
    for first, second in pairs:
        one, other = first.double(), second.double()
        apart = one - other
        largest = max(largest, apart.abs().max().item()) if not math.isnan(largest) else largest
        if apart.isnan().any():
            largest = math.nan
        squared += apart.dot(apart).item()
        dot += one.dot(other).item()
        norm_first += one.dot(one).item()
        norm_second += other.dot(other).item()
    both = math.sqrt(norm_first) * math.sqrt(norm_second)
    return Difference(
        max_abs=largest,
        relative=math.sqrt(squared / norm_first) if norm_first else math.inf,
        cosine=dot / both if both else math.nan,
    )


def _pairs(first: torch.Tensor, second: torch.Tensor, block: int = BLOCK) -> Pairs:
    one, other = (tensor.detach().reshape(-1).split(block) for tensor in (first, second))
    return zip(one, other, strict=True)


def _comparable(tensor: torch.Tensor) -> bool:
    strided = tensor.layout is torch.strided and tensor.device.type != "meta"
    return strided and tensor.dim() > 0 and tensor.numel() > 1


def _constant(tensor: torch.Tensor) -> bool:
    flat = tensor.detach().reshape(-1)
    return bool((flat == flat[0]).all())


def _split(names: list[str], same: Callable[[str, str], bool]) -> list[tuple[str, ...]]:
    groups: list[list[str]] = []
    for name in names:
        group = next((group for group in groups if same(group[0], name)), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return [tuple(group) for group in groups if len(group) > 1]
