"""List a model's modules, and fold those that are all alike into one line of a tree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from torch import nn

from inspector.analyses.classes import words
from inspector.analyses.classes.compute_hierarchy import summary
from inspector.analyses.classes.result import ModuleRow, TreeLine, UsedClass
from inspector.models.memory import shared_names
from inspector.text import shape_text

BRANCH, LAST, PIPE, SPACE = "├─ ", "└─ ", "│  ", "   "


@dataclass(slots=True)
class _ModuleNode:
    row: ModuleRow
    tensors: frozenset[str]  # first names of the tensors below it, each counted once
    children: dict[str, _ModuleNode] = field(default_factory=dict)
    signature: object = None  # equal for nodes that are all alike


def module_rows(
    model: nn.Module, missing: Collection[str], uses: Mapping[int, int] | None
) -> tuple[tuple[ModuleRow, ...], dict[str, int], dict[str, frozenset[str]]]:
    """Describe every module under every one of its names.

    Args:
        missing: Full names of parameters that the file lacks.
        uses: id of a module -> how often the example's forward pass ran it; None: not counted.

    Returns:
        The rows in the order of named_modules; the size of every tensor in elements, by its first
        name; and for each module the first names of the tensors in it. A tensor with several
        names counts once.
    """
    parameters = list(model.named_parameters(remove_duplicate=False))
    groups = {name: group for group in shared_names(parameters) for name in group}
    sizes: dict[str, int] = {}
    inside: dict[str, set[str]] = {}
    for name, parameter in parameters:
        first = groups.get(name, (name,))[0]
        sizes[first] = max(sizes.get(first, 0), parameter.numel())
        above = name.split(".")[:-1]
        for depth in range(len(above) + 1):
            inside.setdefault(".".join(above[:depth]), set()).add(first)
    first_names: dict[int, str] = {}
    rows = []
    for name, module in model.named_modules(remove_duplicate=False):
        seen = first_names.setdefault(id(module), name)
        own = {key: value for key, value in module._parameters.items() if value is not None}
        full = {key: f"{name}.{key}" if name else key for key in own}
        firsts = {groups.get(full[key], (full[key],))[0] for key in own}
        rows.append(
            ModuleRow(
                name=name,
                class_name=type(module).__name__,
                parameters=sum(sizes[key] for key in inside.get(name, ())),
                own_parameters=sum(sizes[key] for key in firsts),
                shapes={key: tuple(value.shape) for key, value in own.items()},
                shared={
                    key: tuple(other for other in groups[full[key]] if other != full[key])
                    for key in own
                    if full[key] in groups
                },
                missing=tuple(key for key in own if full[key] in missing),
                uses=None if uses is None else uses.get(id(module), 0),
                same_as=seen if seen != name else None,
            )
        )
    return tuple(rows), sizes, {name: frozenset(names) for name, names in inside.items()}


def used_classes(model: nn.Module) -> tuple[UsedClass, ...]:
    """Count the modules and their own parameters by class, most parameters first."""
    groups = shared_names(model.named_parameters(remove_duplicate=False))
    repeated = {name for group in groups for name in group[1:]}
    found: dict[type, list[int]] = {}
    for prefix, module in model.named_modules():
        entry = found.setdefault(type(module), [0, 0])
        entry[0] += 1
        entry[1] += sum(
            parameter.numel()
            for key, parameter in module.named_parameters(recurse=False)
            if (f"{prefix}.{key}" if prefix else key) not in repeated
        )
    return tuple(
        UsedClass(each.__name__, each.__module__, count, parameters, summary(each))
        for each, (count, parameters) in sorted(
            found.items(), key=lambda item: (-item[1][1], -item[1][0], item[0].__name__)
        )
    )


def fold_tree(
    rows: Sequence[ModuleRow], sizes: Mapping[str, int], inside: Mapping[str, frozenset[str]]
) -> tuple[TreeLine, ...]:
    """Fold numbered neighbors that are all alike: same classes, shapes, ties and uses.

    Args:
        rows: Of `module_rows`, as the other two.
        sizes: First name of a tensor -> elements.
        inside: Module -> first names of its tensors.

    Returns:
        The lines from the root down; below a folded line stands the inside of its first module.
    """
    nodes = {row.name: _ModuleNode(row, inside.get(row.name, frozenset())) for row in rows}
    for name, node in nodes.items():
        if name:
            parent, _, label = name.rpartition(".")
            nodes[parent].children[label] = node
    for node in reversed(nodes.values()):  # insides first
        node.signature = _signature(node)
    root = nodes[""]
    return tuple(_lines([root], label=root.row.class_name, depth=0, sizes=sizes))


def tree_text(lines: Sequence[TreeLine]) -> str:
    """Draw the lines as text, one a line, with the parameters in a column of their own."""
    heads = [
        rails + (line.class_name if not line.depth else _title(line))
        for rails, line in zip(_rails(lines), lines, strict=True)
    ]
    width = max(map(len, heads))
    digits = max(len(f"{line.parameters:,}") for line in lines)
    return "\n".join(
        f"{head:<{width}}  {line.parameters:>{digits},}  {_remarks(line)}".rstrip()
        for head, line in zip(heads, lines, strict=True)
    )


def shapes_text(row: ModuleRow) -> str:
    """Own parameters as text: "weight 768 × 768, bias 768"."""
    return ", ".join(f"{name} {shape_text(shape)}" for name, shape in row.shapes.items())


def _lines(
    alike: Sequence[_ModuleNode], *, label: str, depth: int, sizes: Mapping[str, int], above: int = 1
) -> Iterator[TreeLine]:
    """The line of some nodes that are all alike, and those below; `above`: uses of the parent."""
    first = alike[0]
    uses = first.row.uses or above  # a list of modules does not run itself
    tensors = frozenset().union(*(node.tensors for node in alike))
    yield TreeLine(
        name=first.row.name,
        label=label,
        depth=depth,
        class_name=first.row.class_name,
        count=len(alike),
        parameters=sum(sizes[name] for name in tensors),
        shapes=shapes_text(first.row),
        note=words.marks(first.row, reused=uses > above),
    )
    for run in _runs(first.children):
        labels = [label for label, _ in run]
        yield from _lines(
            [node for _, node in run],
            label=labels[0] if len(run) == 1 else f"[{labels[0]}–{labels[-1]}]",
            depth=depth + 1,
            sizes=sizes,
            above=uses,
        )


def _runs(children: Mapping[str, _ModuleNode]) -> Iterator[list[tuple[str, _ModuleNode]]]:
    """Split children into runs of numbered neighbors that are all alike."""
    keyed = (((node.signature if label.isdecimal() else label), label, node) for label, node in children.items())
    for _, run in groupby(keyed, key=lambda item: item[0]):
        yield [(label, node) for _, label, node in run]


def _signature(node: _ModuleNode) -> object:
    row = node.row
    return (
        row.class_name,
        tuple(row.shapes.items()),
        tuple(row.shared.items()),
        row.missing,
        row.uses,
        row.same_as,
        tuple((label, child.signature) for label, child in node.children.items()),
    )


def _title(line: TreeLine) -> str:
    if line.count == 1:
        return f"{line.label}: {line.class_name}"
    return f"{line.label}: {line.count} × {line.class_name}, all alike"


def _remarks(line: TreeLine) -> str:
    each = f"{line.parameters // line.count:,} each" if line.count > 1 else ""
    note = f"← {line.note}" if line.note else ""
    return "  ".join(part for part in (each, line.shapes, note) if part)


def _rails(lines: Sequence[TreeLine]) -> Iterable[str]:
    """The branches before each line: a last child gets a corner, an open branch a pipe."""
    drawn: list[str] = []
    open_depths: set[int] = set()  # depths at which another line follows below
    for line in reversed(lines):
        depth = line.depth
        open_depths = {each for each in open_depths if each <= depth}
        before = "".join(PIPE if each in open_depths else SPACE for each in range(1, depth))
        corner = (BRANCH if depth in open_depths else LAST) if depth else ""
        drawn.append(before + corner)
        open_depths.add(depth)
    return reversed(drawn)
