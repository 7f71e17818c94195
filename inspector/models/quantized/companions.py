"""Tell the weights whose codes nobody here can read, by their types and by what is stored beside them.

No class of transformers keeps whole numbers of fewer than 64 bits, nor scales beside a weight. So such numbers, and
a float8, with a companion (the same prefix, another last part, fewer numbers) are codes, however that is spelled.
"""

from __future__ import annotations

import math
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
MOST_OWNERS = 8  # codes of one prefix that a tensor is compared with; a module has a few
MOST_CUTS = 4  # beginnings of a name, up to an underscore, that are compared


class Unread(NamedTuple):
    """What of a checkpoint is codes that nobody here can read."""

    codes: Mapping[str, str]  # stored codes -> the weight that they stand for, in file order
    beside: Mapping[str, str]  # what is stored beside codes, read or not, and is no weight -> those codes

    def companion(self, codes: str) -> str:
        """The first tensor beside some codes; "" if there is none."""
        return next((name for name, owner in self.beside.items() if owner == codes), "")


class CodesPart(NamedTuple):
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
    rest = [
        CodesPart(name, tensors.kinds[place])
        for number, (name, place) in enumerate(zip(tensors.names, tensors.places, strict=True))
        if name not in parts and number not in tensors.buffers
    ]
    codes = [each for each in rest if may_be_codes(each)]
    others = [each for each in rest if not each.name.endswith(NO_COMPANIONS)]
    if not codes and not any(SCALING.search(each.name) for each in others):  # as in most files: all is known
        return Unread({}, {})
    codes += [CodesPart(name, tensors.kinds[tensors.places[tensors.numbers[name]]], read=True) for name in weights]
    near = _Near(codes)
    owners = {each.name: owners for each in others if (owners := near.owners(each))}
    companions: defaultdict[str, list[CodesPart]] = defaultdict(list)
    for each in rest:
        for owner in owners.get(each.name, ()):
            companions[owner.name].append(each)
    unread = {each.name for each in codes if each.name not in owners and is_unread(each, companions[each.name])}
    beside = {name: each[0].name for name, each in owners.items()}
    beside |= {part.name: name for name in unread & weights.keys() for part in found[weights[name]].values()}
    stand_for = {
        each.name: weights.get(each.name) or stands_for(each, companions[each.name])
        for each in codes
        if each.name in unread
    }
    return Unread(
        {name: stand_for[name] for name in sorted(stand_for, key=tensors.numbers.__getitem__)},
        {name: owner for name, owner in beside.items() if name not in unread},
    )


class _Near:
    """Finds the codes that another tensor belongs to, by its name."""

    def __init__(self, codes: Iterable[CodesPart]) -> None:
        self._named = {each.name: each for each in codes}
        self._under: defaultdict[str, list[CodesPart]] = defaultdict(list)
        for each in self._named.values():
            for beginning in (each.split[0], each.name, each.name.rpartition("_")[0]):
                self._under[beginning].append(each)

    def owners(self, other: CodesPart) -> list[CodesPart]:
        """The codes whose name is most like that of a tensor that belongs to them; none if it belongs to none."""
        found = [each for each in self._near(other) if is_companion(each, other)]
        if len(found) < 2:
            return found
        alike = [_length_in_common(each.name, other.name) for each in found]
        return [each for each, length in zip(found, alike, strict=True) if length == max(alike)]

    def _near(self, other: CodesPart) -> Iterator[CodesPart]:
        prefix, last = other.split
        cuts = [place for place, letter in enumerate(last) if letter == "_"][-MOST_CUTS:]
        beginnings = {other.name[: len(other.name) - len(last) + cut] for cut in cuts}  # X_scale
        beginnings |= {prefix, prefix.rpartition(".")[0]}  # X.scale, X.weight.absmax, X.quantizer.scale
        found = (each for beginning in beginnings for each in self._under.get(beginning, ())[:MOST_OWNERS])
        yield from {each.name: each for each in found}.values()


def may_be_coded(dtype: str) -> bool:
    """Whether a type may be that of codes: not that of most floats; whole numbers of 64 bits are where they are."""
    return dtype in FLOAT8 or not dtype.startswith(("float", "bfloat", "complex"))


def may_be_codes(part: CodesPart) -> bool:
    """Whether a tensor may be codes, as far as its name, type and shape tell."""
    dtype = part.kind.dtype
    if part.numbers < 2 or part.name.endswith("bias") or not may_be_coded(dtype):
        return False
    if dtype in FLOAT8 or part.name.endswith(PACKED):
        return True
    return dtype in NARROW and len(part.kind.shape) > 1


def is_companion(codes: CodesPart, other: CodesPart) -> bool:
    """Whether a tensor whose name is near that of codes belongs to them."""
    if other.name == codes.name or not 0 < other.numbers < codes.kind.nbytes:
        return False
    if may_be_codes(other) and other.kind.nbytes >= codes.kind.nbytes:
        return False
    prefix, last = codes.split
    rest = other.name[len(prefix) :].lstrip("._")
    if SCALING.search(rest) or codes.read:
        return bool(SCALING.search(rest))
    alone = last == WEIGHT or (codes.kind.dtype in NARROW and not may_be_codes(other))
    return _is_derived(last, rest) or (alone and other.split[0] == prefix)


def _is_derived(last: str, other: str) -> bool:
    """Whether the last part of a name is the other one with something added, or has its beginning in common."""
    stem = last.rpartition("_")[0] or last
    return other.startswith((f"{last}_", f"{last}.", f"{stem}_"))


def _length_in_common(one: str, other: str) -> int:
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1), len(one))


def is_unread(codes: CodesPart, companions: Iterable[CodesPart]) -> bool:
    """Whether nobody can read codes, or not all that belongs to them."""
    if codes.read:
        return not all(ACTIVATIONS.search(each.name.removeprefix(codes.split[0])) for each in companions)
    if codes.kind.dtype in FLOAT8:  # without a scale, it is a number
        return any(each.kind.dtype not in (codes.kind.dtype, "int64") for each in companions)
    return codes.name.endswith(PACKED) or bool(companions)


def stands_for(codes: CodesPart, companions: Iterable[CodesPart]) -> str:
    """The name of the weight that codes stand for.

    X.weight for X.qweight beside X.scales, X.down_proj for X.down_proj_packed beside X.down_proj_scale.
    """
    prefix, last = codes.split
    if codes.kind.dtype in FLOAT8 or last == WEIGHT:
        return codes.name
    if prefix.endswith(f".{WEIGHT}"):  # X.weight._data
        return prefix
    others = [each.name.removeprefix(f"{prefix}.") for each in companions]
    own = [part for part in (last, last.rpartition("_")[0]) if len(part) > 1]  # "q_weight" beside "q_scale" is of no q
    alike = (part for part in own if any(other.startswith((f"{part}_", f"{part}.")) for other in others))
    return ".".join(filter(None, [prefix, next(alike, WEIGHT).strip("_")]))
