"""The stored tensors as a tree of modules, and the files as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.analyses.overview.result import Overview
from inspector.text import bytes_text, count_text
from inspector.view.blocks import Branch, Tree

if TYPE_CHECKING:  # half a second of the first paint
    import pandas as pd

LEVELS = 3  # of modules, lists not counted
MOST = 12  # modules of one level that are told apart


@dataclass(slots=True)
class _Module:
    parameters: int = 0
    nbytes: int = 0
    below: dict[str, _Module] = field(default_factory=dict)

    def add(self, parameters: int, nbytes: int) -> None:
        self.parameters += parameters
        self.nbytes += nbytes


def module_tree(overview: Overview) -> Tree:
    """Modules with the parameters and bytes that the files hold of them; the items of a list share a line."""
    root, stored = _Module(), overview.stored
    sizes = [(math.prod(shape), nbytes) for _, shape, nbytes, _ in stored.kinds]
    for name, place in zip(stored.names, stored.numbers, strict=True):
        module = root
        module.add(*sizes[place])
        for part in name.split(".")[:-1]:
            module = module.below.setdefault(part, _Module())
            module.add(*sizes[place])
    return Tree((Branch(overview.name, _size(root), tuple(_branches(root, LEVELS))),))


def _branches(module: _Module, levels: int) -> Iterator[Branch]:
    if not levels:
        return
    items = {part: each for part, each in module.below.items() if part.isdecimal()}
    named = [(part, each) for part, each in module.below.items() if part not in items]
    for part, each in named[:MOST]:
        inner = [item for name, item in each.below.items() if name.isdecimal()]
        times = f" × {len(inner):,}" if len(inner) > 1 else ""
        yield Branch(f"{part}{times}", _size(each), tuple(_branches(each, levels if inner else levels - 1)))
    if len(named) > MOST:
        rest = _Module()
        for _, each in named[MOST:]:
            rest.add(each.parameters, each.nbytes)
        yield Branch(f"… {len(named) - MOST:,} more", _size(rest))
    if items:
        merged = _Module()
        for each in items.values():
            _merge(merged, each)
        yield from _branches(merged, levels)


def _merge(into: _Module, module: _Module) -> None:
    into.add(module.parameters, module.nbytes)
    for part, each in module.below.items():
        _merge(into.below.setdefault(part, _Module()), each)


def _size(module: _Module) -> str:
    return f"{count_text(module.parameters):>7}  {bytes_text(module.nbytes):>9}"


def file_table(overview: Overview) -> pd.DataFrame:
    """One row a file: name, format, nbytes, and where any has it sha256 and linked_from."""
    import pandas as pd

    names = ("name", "format", "nbytes", "sha256", "linked_from")
    rows = [[getattr(file, name) for name in names] for file in overview.files]
    return pd.DataFrame(rows, columns=list(names)).dropna(axis="columns", how="all")
