"""Stored tensors as an answer lists them: a hundred thousand names, and few kinds."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
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
        ValueError: If a tensor is of no kind.
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]  # each once
    places: bytes  # of each tensor's kind in `kinds`: four bytes, the lowest first

    def __post_init__(self) -> None:
        if len(self.places) != 4 * len(self.names) or max(self.numbers, default=-1) >= len(self.kinds):
            raise ValueError("A tensor is of no kind.")

    @classmethod
    def of(cls, tensors: Stored) -> StoredTensors:
        """List tensors."""
        kinds: dict[Kind, int] = {}
        among = [kinds.setdefault(kind, len(kinds)) for kind in map(attrgetter(*KIND), tensors.kinds)]
        places = [among[place] for place in tensors.places]
        return cls(tensors.names, tuple(kinds), struct.pack(f"<{len(places)}I", *places))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of each tensor's kind in `kinds`."""
        return struct.unpack(f"<{len(self.names)}I", self.places)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Columns name, shape (text), dtype, parameters, nbytes, file."""
        import pandas as pd

        rows = [(shape_text(shape), dtype, math.prod(shape), nbytes, file) for dtype, shape, nbytes, file in self.kinds]
        kinds = pd.DataFrame(rows, columns=["shape", "dtype", "parameters", "nbytes", "file"])
        found = kinds.iloc[list(self.numbers)].reset_index(drop=True)
        found.insert(0, "name", list(self.names))
        return found
