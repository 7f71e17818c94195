"""Tensors by column: a checkpoint may have a hundred thousand of them, and few kinds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, overload


class TensorInfo(NamedTuple):
    """One named tensor of a weight file; its bytes are read only when they are asked for.

    A tuple, as a checkpoint may have a hundred thousand: it is made in a fifth of a data class' time.
    """

    name: str
    dtype: str  # torch's name: "float32", "bfloat16", "int64", ...
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements, as torch counts them
    file: str  # FileInfo.name
    begin: int  # absolute byte offset in the file of the tensor's first element
    nbytes: int  # numel * itemsize
    storage: str  # equal for two tensors exactly if they were saved on one storage
    storage_nbytes: int  # size of that storage

    @property
    def place(self) -> tuple[str, int, str, tuple[int, ...], tuple[int, ...]]:
        """Equal for names of the same numbers in the same file."""
        return self.file, self.begin, self.dtype, self.shape, self.strides


# What files store although no gradient ever changes it.
BUFFERS = (
    ".position_ids",
    ".masked_bias",
    ".rotary_emb.inv_freq",
    ".embeddings.token_type_ids",
    ".rope_freqs.weight",  # of GGUF files: a part of the settings
    ".e_score_correction_bias",  # DeepSeek-V3's: set from how often experts are chosen, without a gradient
)
MASK = ("attn.bias", "attention.bias", ".causal_mask")
NARROW = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32"})  # whole numbers that codes are kept in
MAY_BE_BUFFERS = (*BUFFERS, *MASK)


def is_buffer(tensor: TensorInfo) -> bool:
    """Whether a stored tensor is a constant table and no parameter."""
    mask = tensor.name.endswith(MASK) and len(tensor.shape) == 4
    return mask or f".{tensor.name}".endswith(BUFFERS)


def stored_once(tensors: Iterable[TensorInfo]) -> list[TensorInfo]:
    """Leave out tensors that lie on the bytes of another one."""
    seen: dict[tuple[object, ...], TensorInfo] = {}
    for tensor in tensors:
        seen.setdefault(tensor[4:8], tensor)  # file, begin, nbytes, storage
    return list(seen.values())


def with_zeros(tensors: Tensors, zeros: Mapping[str, tuple[int, ...]]) -> Tensors:
    """Headers, and behind them those of parameters that no file holds and that count as zeros."""
    if not zeros:
        return tensors
    dtype = tensors[0].dtype
    made = (TensorInfo(name, dtype, shape, (0,) * len(shape), "", 0, 0, f":{name}", 0) for name, shape in zeros.items())
    return Tensors.of([*tensors, *made])


class Kind(NamedTuple):
    """What tensors have in common that differ in their names and places alone."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    file: str
    nbytes: int


class Tensors(Sequence[TensorInfo]):
    """The tensors of a checkpoint, in the order of its files.

    As a sequence it makes a TensorInfo of each, which takes longer than most questions do.

    Args:
        kinds: Each once, in the order in which tensors first are of them.
        names: Of the tensors.
        places: Of each tensor's kind in `kinds`.
        begins: Absolute byte offset of each in its file.
        shared: Number of a tensor -> its storage and the size of that, where they are not the tensor's own.
    """

    def __init__(
        self,
        kinds: Sequence[Kind],
        names: Sequence[str],
        places: Sequence[int],
        begins: Sequence[int],
        shared: Mapping[int, tuple[str, int]] = MappingProxyType({}),
    ) -> None:
        self.kinds, self.names, self.places = tuple(kinds), tuple(names), tuple(places)
        self.begins, self.shared = tuple(begins), shared

    @classmethod
    def of(cls, tensors: Iterable[TensorInfo]) -> Tensors:
        """Sort tensors into columns."""
        if isinstance(tensors, cls):
            return tensors
        kinds: dict[Kind, int] = {}
        names, places, begins = [], [], []
        shared: dict[int, tuple[str, int]] = {}
        for number, (name, dtype, shape, strides, file, begin, nbytes, storage, storage_nbytes) in enumerate(tensors):
            names.append(name)
            places.append(kinds.setdefault(Kind(dtype, shape, strides, file, nbytes), len(kinds)))
            begins.append(begin)
            if storage_nbytes != nbytes or storage != f"{file}:{name}":
                shared[number] = storage, storage_nbytes
        return cls(tuple(kinds), names, places, begins, shared)

    @classmethod
    def joined(cls, parts: Iterable[Tensors]) -> Tensors:
        """Put the tensors of several files, no two of them the same, behind each other."""
        kinds, names, places, begins = [], [], [], []
        shared: dict[int, tuple[str, int]] = {}
        for part in parts:
            before = len(kinds)
            places += [before + place for place in part.places]
            shared |= {len(names) + number: storage for number, storage in part.shared.items()}
            kinds += part.kinds
            names += part.names
            begins += part.begins
        return cls(kinds, names, places, begins, shared)

    def renamed(self, names: Mapping[str, str]) -> Tensors:
        """The same tensors under other names, all of which are given; what shares a storage goes on doing so."""
        renamed = [names[name] for name in self.names]
        return Tensors(self.kinds, renamed, self.places, self.begins, self.shared)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.names)

    def __iter__(self) -> Iterator[TensorInfo]:
        """Each tensor by itself."""
        return iter(self._every)

    @overload
    def __getitem__(self, number: int) -> TensorInfo: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[TensorInfo, ...]: ...
    def __getitem__(self, number: int | slice) -> TensorInfo | tuple[TensorInfo, ...]:
        """One tensor, or several."""
        return self._every[number]

    def __eq__(self, other: object) -> bool:
        """Whether another sequence has the same tensors."""
        return tuple(self) == tuple(other) if isinstance(other, Tensors | tuple) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @cached_property
    def _every(self) -> tuple[TensorInfo, ...]:
        kinds = map(self.kinds.__getitem__, self.places)
        made = [
            (name, dtype, shape, strides, file, begin, nbytes, f"{file}:{name}", nbytes)
            for name, begin, (dtype, shape, strides, file, nbytes) in zip(self.names, self.begins, kinds, strict=True)
        ]
        for number, storage in self.shared.items():
            made[number] = (*made[number][:7], *storage)
        return tuple(map(TensorInfo._make, made))

    def _one(self, number: int) -> TensorInfo:
        dtype, shape, strides, file, nbytes = self.kinds[self.places[number]]
        name = self.names[number]
        storage, storage_nbytes = self.shared.get(number) or (f"{file}:{name}", nbytes)
        return TensorInfo(name, dtype, shape, strides, file, self.begins[number], nbytes, storage, storage_nbytes)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each tensor by its name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def ordered(self) -> list[str]:
        """The names in alphabetical order."""
        return sorted(self.names)

    @cached_property
    def by_name(self) -> Mapping[str, TensorInfo]:
        """The tensors by name: each weight is asked for by itself."""
        return dict(zip(self.names, self._every, strict=True))

    def find(self, name: str) -> TensorInfo:
        """The tensor of a name, where few are asked for."""
        return self._one(self.numbers[name])

    def ending(self, endings: tuple[str, ...]) -> list[int]:
        """The numbers of tensors that are called as an ending without its first dot, or end with one."""
        found = {number for number, name in enumerate(self.names) if name.endswith(endings)}
        whole = (self.numbers.get(ending.removeprefix(".")) for ending in endings)
        return sorted(found.union(number for number in whole if number is not None))

    @cached_property
    def buffers(self) -> frozenset[int]:
        """The numbers of constant tables, which are no parameters."""
        return frozenset(number for number in self.ending(MAY_BE_BUFFERS) if is_buffer(self._one(number)))

    @property
    def tables(self) -> Iterator[str]:
        """The names of constant tables."""
        return (self.names[number] for number in self.buffers)

    @cached_property
    def weights(self) -> Mapping[Kind, int]:
        """How many stored tensors there are of each kind, those that are no parameters left out."""
        counts = Counter(self.places)
        counts.subtract(self.places[number] for number in self.buffers)
        return {self.kinds[place]: count for place, count in counts.items() if count and self.kinds[place].file}

    @cached_property
    def stored(self) -> Mapping[Kind, int]:
        """The same of weights that lie on one another's bytes, each place in a file once."""
        if not self.shared:  # each has a storage of its own
            return self.weights
        once = stored_once(each for each in self if each.file and not is_buffer(each))
        return Counter(Kind(*each[1:5], each.nbytes) for each in once)


def count_numbers(kinds: Mapping[Kind, int]) -> int:
    """How many numbers so many tensors of each kind hold, as they are stored."""
    return sum(count * math.prod(kind.shape) for kind, count in kinds.items())


def count_by_dtype(kinds: Mapping[Kind, int]) -> dict[str, int]:
    """How many numbers are stored in each dtype."""
    counts: Counter[str] = Counter()
    for kind, count in kinds.items():
        counts[kind.dtype] += count * math.prod(kind.shape)
    return dict(counts)


def count_nbytes(kinds: Mapping[Kind, int]) -> int:
    """How many bytes they take."""
    return sum(count * kind.nbytes for kind, count in kinds.items())
