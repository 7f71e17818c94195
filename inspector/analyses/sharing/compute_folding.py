"""Fold long lists of tensors into the lines of the sharing graph."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from inspector.analyses.sharing.result import SharedGroup
from inspector.names import HOLE, LISTED, fill_pattern, list_pattern
from inspector.text import plural

LINES = 40  # a graph with more cannot be taken in; one more line says what was left out
SHARED_LINES = 24  # from here on, shared names of one pattern are one line
WIDE = 4  # a list inside a list is a line of its own from so many members on: experts
NUMBER = re.compile(r"\d{1,9}")
COLUMNS = ("label", "tensors", "parameters", "nbytes", "shape", "group")


@dataclass(slots=True)
class _Line:
    pattern: str
    numbers: list[tuple[int, ...]] = field(default_factory=list)  # what filled the pattern's holes
    places: list[int] = field(default_factory=list)  # of its tensors
    groups: set[int] = field(default_factory=set)
    family: Hashable = None  # lines of one storage node; None: shares nothing


Pattern = tuple[str, tuple[int, ...]]  # text with holes, and the numbers that were there
Rule = Callable[[str], Pattern]


def fold_rows(tensors: pd.DataFrame, groups: Sequence[SharedGroup] = ()) -> tuple[pd.DataFrame, list[int]]:
    """Draw what is shared as lines of its own, and fold everything else by block.

    Repeated layers become one line, "encoder.layer.[0–11]", and wide lists in them, such as
    experts, another; other neighbors of one module become the module's line. Where many names are
    shared, those of one pattern become one line, too: groups are folded together only if they have
    the same verdict and the same patterns. What is still too much stands in a last line,
    "… and 12 more lines".

    Args:
        tensors: results.Sharing.tensors without `row`, in the model's order.
        groups: results.Sharing.groups, to which the column `group` points.

    Returns:
        Rows in the order of each line's first tensor, at most LINES + 1: label, tensors, parameters
        (buffers left out), nbytes, shape ("" where it differs), group (-1: not shared; where groups
        were folded together, the first of them, on all their lines). And for each tensor the index
        of its row.
    """
    names, group_of = tensors["name"].tolist(), tensors["group"].tolist()
    shared = _fold_shared(names, group_of, groups)
    alone = [place for place, group in enumerate(group_of) if group < 0]
    rest = _fold_alone(names, alone, room=max(LINES - len(shared), LINES // 4))
    sizes = tensors["nbytes"].tolist()
    kept, left = _cap(shared, rest, sizes)
    kept.sort(key=lambda line: line.places[0])
    lines = [*kept, _join(left)] if left else kept
    first = _first_groups(kept)
    labels = [_label(line, names) for line in kept]
    labels += [f"… and {plural(len(left), 'more line')}"] if left else []
    rows = pd.DataFrame(list(_records(lines, labels, first, tensors)), columns=pd.Index(list(COLUMNS)))
    row_of = [0] * len(names)
    for row, line in enumerate(lines):
        for place in line.places:
            row_of[place] = row
    return rows, row_of


def _fold_shared(names: Sequence[str], group_of: Sequence[int], groups: Sequence[SharedGroup]) -> list[_Line]:
    """Fold shared names: each alone, else by pattern, else by block; the first that is short."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, group in enumerate(group_of):
        if group >= 0:
            places[group].append(place)
    if sum(map(len, places.values())) <= SHARED_LINES:
        return [
            _Line(names[place], [()], [place], {group}, family=group)
            for group, members in places.items()
            for place in members
        ]
    lines = _fold_by(list_pattern, names, places, groups)
    return lines if len(lines) <= SHARED_LINES else _fold_by(_block, names, places, groups)


def _fold_by(
    rule: Rule, names: Sequence[str], places: Mapping[int, Sequence[int]], groups: Sequence[SharedGroup]
) -> list[_Line]:
    """Join groups of one verdict whose names have the same patterns: one line a pattern."""
    found: dict[Hashable, _Line] = {}
    for group, members in places.items():
        patterns = [rule(names[place]) for place in members]
        verdict = groups[group].verdict if group < len(groups) else ""
        family = (verdict, frozenset(text for text, _ in patterns))
        for place, (text, numbers) in zip(members, patterns, strict=True):
            line = found.setdefault((family, text, len(numbers)), _Line(text, family=family))
            line.places.append(place)
            line.numbers.append(numbers)
            line.groups.add(group)
    for line in found.values():
        line.places.sort()
    return list(found.values())


def _fold_alone(names: Sequence[str], places: Sequence[int], *, room: int) -> list[_Line]:
    """Fold names that share nothing by the first rule that leaves few enough lines."""
    lines: list[_Line] = []
    wide = _wide_lists(names[place] for place in places)
    rules: tuple[Rule, ...] = (
        lambda name: _deep_block(name, wide),
        _any_number,
        lambda name: (".".join(name.split(".")[:2]), ()),
        lambda name: (name.split(".")[0], ()),
    )
    for rule in rules:
        found: dict[Hashable, _Line] = {}
        for place in places:
            text, numbers = rule(names[place])
            line = found.setdefault((text, len(numbers)), _Line(text))
            line.places.append(place)
            line.numbers.append(numbers)
        lines = list(found.values())
        if len(lines) <= room:
            break
    return lines


def _block(name: str) -> Pattern:
    """The block that a tensor belongs to: its first list, else its module's neighborhood."""
    found = LISTED.search(name)
    if found and found.end() < len(name):
        return f"{name[: found.start()]}.{HOLE}", (int(found[1]),)
    parts = name.split(".")
    return ".".join(parts[:-2] or parts[:-1] or parts), ()


def _wide_lists(names: Iterable[str]) -> frozenset[str]:
    """Patterns that end in a list of at least WIDE members inside another list."""
    members: dict[str, set[int]] = defaultdict(set)
    for name in names:
        text, numbers = list_pattern(name)
        parts = text.split(HOLE)
        for depth in range(1, len(numbers)):
            members[HOLE.join(parts[: depth + 1]) + HOLE].add(numbers[depth])
    return frozenset(text for text, found in members.items() if len(found) >= WIDE)


def _deep_block(name: str, wide: frozenset[str]) -> Pattern:
    """The block, or the deepest wide list in it that the tensor belongs to."""
    text, numbers = list_pattern(name)
    parts = text.split(HOLE)
    for depth in range(len(numbers) - 1, 0, -1):
        prefix = HOLE.join(parts[: depth + 1]) + HOLE
        if prefix in wide and prefix != text:
            return prefix, numbers[: depth + 1]
    return _block(name)


def _any_number(name: str) -> Pattern:
    """The module with a hole for each number in it, wherever it stands: "layer_7", "h.7"."""
    module = name.rpartition(".")[0] or name
    return NUMBER.sub(HOLE, module), tuple(map(int, NUMBER.findall(module)))


def _cap(shared: list[_Line], rest: list[_Line], sizes: Sequence[int]) -> tuple[list[_Line], list[_Line]]:
    """Keep the largest lines, shared ones first and all those of one storage node together."""
    families: dict[Hashable, list[_Line]] = defaultdict(list)
    for line in shared:
        families[line.family].append(line)

    def nbytes(lines: Sequence[_Line]) -> int:
        return -sum(sizes[place] for line in lines for place in line.places)

    bundles = [*sorted(families.values(), key=nbytes), *sorted(([line] for line in rest), key=nbytes)]
    kept: list[_Line] = []
    left: list[_Line] = []
    for bundle in bundles:
        fits = len(kept) + len(bundle) <= LINES
        (kept if fits else left).extend(bundle)
    return kept, left


def _join(lines: Sequence[_Line]) -> _Line:
    return _Line(
        "",
        places=sorted(place for line in lines for place in line.places),
        groups={group for line in lines for group in line.groups},
    )


def _first_groups(lines: Iterable[_Line]) -> dict[Hashable, int]:
    first: dict[Hashable, int] = {}
    for line in lines:
        if line.family is not None:
            first[line.family] = min(first.get(line.family, min(line.groups)), *line.groups)
    return first


def _records(
    lines: Sequence[_Line], labels: Sequence[str], first: Mapping[Hashable, int], tensors: pd.DataFrame
) -> Iterator[dict]:
    shapes, sizes = tensors["shape"].tolist(), tensors["nbytes"].tolist()
    of_parameter = tensors["kind"] == "parameter"
    counts = tensors["parameters"].where(of_parameter, 0).tolist()
    for line, label in zip(lines, labels, strict=True):
        found = {shapes[place] for place in line.places}
        yield {
            "label": label,
            "tensors": len(line.places),
            "parameters": sum(counts[place] for place in line.places),
            "nbytes": sum(sizes[place] for place in line.places),
            "shape": found.pop() if len(found) == 1 else "",
            "group": first.get(line.family, -1),
        }


def _label(line: _Line, names: Sequence[str]) -> str:
    """Name a line: its only name, the one module of all, or its pattern with the numbers' spans."""
    members = [names[place] for place in line.places]
    if len(members) == 1:
        return members[0]
    if HOLE not in line.pattern:
        modules = {name.rpartition(".")[0] for name in members}
        return modules.pop() if len(modules) == 1 else line.pattern
    return fill_pattern(line.pattern, line.numbers)
