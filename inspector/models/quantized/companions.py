"""Tell the weights whose codes nobody here can read, by their types and by what is stored beside them.

No class of transformers keeps whole numbers of fewer than 64 bits, nor scales beside a weight. So such numbers, and
a float8, with a companion (the same prefix, another last part, fewer numbers) are codes, however that is spelled.
"""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from inspector.models.quantized.formats import FLOAT8
from inspector.store.manifests.columns import NARROW, Kind, TensorInfo, Tensors

WEIGHT = "weight"  # the last part of most names; the module of such a tensor keeps nothing else but a bias
PACKED = ("qweight", "weight_packed", "W_q", "_blocks", WEIGHT)  # ends of names of which whole numbers are codes
SCALING = re.compile(r"scale|scb|absmax|amax|zero|quant|codebook|centroid|lut", re.IGNORECASE)
# About what goes into a module and comes out: beside codes that can be read, it changes no weight.
ACTIVATIONS = re.compile(r"(^|[._])(input|output|activations?|act|[qkv]_scale)([._]|$)", re.IGNORECASE)
NO_COMPANIONS = ("bias", "num_batches_tracked")  # ends of names that any module may have
MOST_OWNERS = 64  # codes of one prefix that a tensor is compared with; a module has a few


class Unread(NamedTuple):
    """What of a checkpoint is codes that nobody here can read."""

    codes: Mapping[str, str]  # stored codes -> the weight that they stand for, in file order
    beside: Mapping[str, str]  # what is stored beside codes, read or not, and is no weight -> those codes


class Part(NamedTuple):
    """A stored tensor that may be codes, or may belong to some."""

    name: str
    kind: Kind
    read: bool = False  # a known convention reads it as codes

    @property
    def split(self) -> tuple[str, str]:
        """What stands before the last part of its name, and that part."""
        prefix, _, last = self.name.rpartition(".")
        return prefix, last

    @property
    def numbers(self) -> int:
        """How many it holds."""
        return math.prod(self.kind.shape)


def find_unread(tensors: Tensors, found: Mapping[str, Mapping[str, TensorInfo]]) -> Unread:
    """Find the codes that nobody here can read, and what is stored beside codes.

    Args:
        tensors: As they are stored.
        found: What is stored of each weight that a convention reads, by its role: "codes", "scale", ... Codes with a
            companion that the convention does not know are read in part only, so they are among those that nobody
            can read.
    """
    if not any(may_be_coded(kind.dtype) for kind in tensors.kinds):
        return Unread({}, {})
    weights = {parts["codes"].name: name for name, parts in found.items()}
    parts = {part.name for parts in found.values() for part in parts.values()}
    every = [
        Part(name, tensors.kinds[place], name in weights)
        for name, place in zip(tensors.names, tensors.places, strict=True)
    ]
    rest = [each for number, each in enumerate(every) if each.name not in parts and number not in tensors.buffers]
    codes = [each for each in every if each.read] + [each for each in rest if may_be_codes(each)]
    near = _Near(codes)
    others = (each for each in rest if not each.name.endswith(NO_COMPANIONS))
    owners = {each.name: owners for each in others if (owners := near.owners(each))}
    companions: defaultdict[str, list[Part]] = defaultdict(list)
    for each in rest:
        for owner in owners.get(each.name, ()):
            companions[owner.name].append(each)
    unread = {each.name for each in codes if each.name not in owners and is_unread(each, companions[each.name])}
    beside = {name: each[0].name for name, each in owners.items()}
    beside |= {part.name: name for name in unread & weights.keys() for part in found[weights[name]].values()}
    return Unread(
        {
            each.name: weights.get(each.name) or stands_for(each, companions[each.name])
            for each in every
            if each.name in unread
        },
        {name: owner for name, owner in beside.items() if name not in unread},
    )


class _Near:
    """Finds the codes that another tensor belongs to, by its name."""

    def __init__(self, codes: Iterable[Part]) -> None:
        self._named = {each.name: each for each in codes}
        self._under: defaultdict[str, list[Part]] = defaultdict(list)
        for each in self._named.values():
            self._under[each.split[0]].append(each)

    def owners(self, other: Part) -> list[Part]:
        """The codes whose name is most like that of a tensor that belongs to them; none if it belongs to none."""
        found = [each for each in self._near(other) if is_companion(each, other)]
        if len(found) < 2:
            return found
        alike = [len(os.path.commonprefix([each.name, other.name])) for each in found]
        return [each for each, length in zip(found, alike, strict=True) if length == max(alike)]

    def _near(self, other: Part) -> Iterator[Part]:
        prefix, _ = other.split
        if prefix in self._named:  # X.weight.absmax
            yield self._named[prefix]
        for under in (prefix, prefix.rpartition(".")[0]):  # X.scale, X.quantizer.scale
            yield from self._under.get(under, ())[:MOST_OWNERS]


def may_be_coded(dtype: str) -> bool:
    """Whether a type may be that of codes: not that of most floats; whole numbers of 64 bits are where they are."""
    return dtype in FLOAT8 or not dtype.startswith(("float", "bfloat", "complex"))


def may_be_codes(part: Part) -> bool:
    """Whether a tensor may be codes, as far as its name, type and shape tell."""
    dtype = part.kind.dtype
    if part.numbers < 2 or part.name.endswith("bias") or not may_be_coded(dtype):
        return False
    if dtype in FLOAT8 or part.name.endswith(PACKED):
        return True
    return dtype in NARROW and len(part.kind.shape) > 1


def is_companion(codes: Part, other: Part) -> bool:
    """Whether a tensor whose name is near that of codes belongs to them."""
    if other.name == codes.name or not 0 < other.numbers < codes.kind.nbytes:
        return False
    if may_be_codes(other) and other.kind.nbytes >= codes.kind.nbytes:
        return False
    prefix, last = codes.split
    rest = other.name.removeprefix(f"{prefix}.")
    if SCALING.search(rest) or _is_derived(last, rest):
        return True
    alone = last == WEIGHT or (codes.kind.dtype in NARROW and not may_be_codes(other))
    return alone and not codes.read and "." not in rest


def _is_derived(last: str, other: str) -> bool:
    """Whether the last part of a name is the other one with something added, or has its beginning in common."""
    stem = last.rpartition("_")[0] or last
    return other.startswith((f"{last}_", f"{last}.", f"{stem}_"))


def is_unread(codes: Part, companions: Iterable[Part]) -> bool:
    """Whether nobody can read codes, or not all that belongs to them."""
    if codes.read:
        return any(not ACTIVATIONS.search(each.name.removeprefix(codes.split[0])) for each in companions)
    if codes.kind.dtype in FLOAT8:  # without a scale, it is a number
        return any(each.kind.dtype != codes.kind.dtype and each.kind.dtype != "int64" for each in companions)
    return codes.name.endswith(PACKED) or bool(companions)


def stands_for(codes: Part, companions: Iterable[Part]) -> str:
    """The name of the weight that codes stand for: what their name has in common with those of their companions.

    X.weight for X.qweight beside X.scales, X.down_proj for X.down_proj_packed beside X.down_proj_scale.
    """
    prefix, last = codes.split
    others = [each.name.removeprefix(f"{prefix}.") for each in companions]
    stem = last.rpartition("_")[0]
    if last == WEIGHT or codes.kind.dtype in FLOAT8 or any(other.startswith((f"{last}_", f"{last}.")) for other in others):
        return codes.name
    own = stem and (stem == WEIGHT or last == f"{stem}_blocks" or any(other.startswith(f"{stem}_") for other in others))
    return ".".join(filter(None, [prefix, stem if own else WEIGHT]))
