"""Stored tensors as an answer lists them: a hundred thousand names, and few kinds."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from inspector.text import shape_text

if TYPE_CHECKING:  # made where the list is shown: a process that asks for other facts does without
    import pandas as pd

KIND = ("dtype", "shape", "nbytes", "file")
Kind = tuple[str, tuple[int, ...], int, str]


class Stored(Protocol):
    """The same with more of each kind: by column, kinds in the order in which tensors first are of them."""

    @property
    def names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def kinds(self) -> Sequence[Any]: ...  # noqa: D102 - that have the fields of `KIND`
    @property
    def places(self) -> tuple[int, ...]: ...  # noqa: D102


@dataclass(frozen=True)
class StoredTensors:
    """The tensors in the order of the files.

    Raises:
        ValueError: If a tensor is of no kind, or has no name in the files.
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]  # each once
    places: bytes  # of each tensor's kind in `kinds`: four bytes, the lowest first
    in_files: tuple[str, ...] = ()  # the names that the files have; empty: the same

    def __post_init__(self) -> None:
        if len(self.places) != 4 * len(self.names) or max(self.numbers, default=-1) >= len(self.kinds):
            raise ValueError("A tensor is of no kind.")
        if self.in_files and len(self.in_files) != len(self.names):
            raise ValueError("A tensor has no name in the files.")

    @classmethod
    def of(cls, tensors: Stored, names: Mapping[str, str] = MappingProxyType({})) -> StoredTensors:
        """List tensors.

        Args:
            tensors: As the model has them.
            names: Of those that have another name in the files: that name.
        """
        kinds: dict[Kind, int] = {}
        among = [kinds.setdefault(kind, len(kinds)) for kind in map(attrgetter(*KIND), tensors.kinds)]
        places = [among[place] for place in tensors.places]
        in_files = tuple(names.get(name, name) for name in tensors.names) if names else ()
        return cls(tensors.names, tuple(kinds), struct.pack(f"<{len(places)}I", *places), in_files)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of each tensor's kind in `kinds`."""
        return struct.unpack(f"<{len(self.names)}I", self.places)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Columns name, shape (text), dtype, parameters, nbytes, file; and name_in_file where some are others."""
        import pandas as pd

        rows = [(shape_text(shape), dtype, math.prod(shape), nbytes, file) for dtype, shape, nbytes, file in self.kinds]
        kinds = pd.DataFrame(rows, columns=["shape", "dtype", "parameters", "nbytes", "file"])
        found = kinds.iloc[list(self.numbers)].reset_index(drop=True)
        found.insert(0, "name", list(self.names))
        if self.in_files:
            found["name_in_file"] = list(self.in_files)
        return found
