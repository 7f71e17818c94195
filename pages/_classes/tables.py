"""Tables of the page about the model's classes."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from inspector.analyses.classes.result import AncestorClass, ModelClasses, ModuleRow, OutputField, SiblingClass
from inspector.analyses.classes.words import remarks
from inspector.analyses.overview.words import HEADS
from inspector.names import group_names
from inspector.text import literal, shape_text

ROOT = "the model itself"
OFFERED = 2_000  # modules by name
ANSWERS = {name: title for name, (title, _) in HEADS.items()} | {"base model": "No head"}


def sibling_rows(siblings: tuple[SiblingClass, ...]) -> str:
    """The classes that could load the file, as a Markdown table."""
    lines = ["| Class | In the file | Result of loading this file |", "|---|---|---|"]
    for each in siblings:
        badge = ":green-badge[:material/check: present]" if each.present else ":gray-badge[:material/remove: absent]"
        head = ANSWERS.get(each.head or "", "Own heads")
        lines.append(f"| {literal(each.name)} | {badge} | **{head}.** {literal(each.note)} |")
    return "\n".join(lines)


def ancestor_list(hierarchy: tuple[AncestorClass, ...], kind: str) -> str:
    """What each class, or each mixin, brings, as a Markdown list."""
    lines = []
    for each in hierarchy:
        if each.kind == kind:
            via = f" Inherited through {literal(each.via)}." if kind == "mixin" and each.via else ""
            adds = ", ".join(f"`{name}`" for name in each.adds) or "nothing notable"
            lines.append(
                f"- **{literal(each.name)}** :gray[{literal(each.module)}]  \n"
                f"  {literal(each.summary)}{via}  \n  Adds {adds}"
            )
    return "\n".join(lines)


def module_frame(modules: tuple[ModuleRow, ...], *, inside: str = "") -> pd.DataFrame:
    """Modules as rows of a table, named as seen from inside one of them."""
    return pd.DataFrame(
        {
            "name": module.name.removeprefix(f"{inside}.") or ROOT,
            "class": module.class_name,
            "parameters": module.parameters,
            "own_parameters": module.own_parameters,
            "shapes": ", ".join(f"{key} {shape_text(s)}" for key, s in module.shapes.items()),
            "uses": module.uses,
            "note": remarks(module),
        }
        for module in modules
    )


def offered(names: Sequence[str], chosen: str) -> list[str]:
    """Modules to choose from: all, or of very many the first of each pattern and the one that is chosen."""
    if len(names) <= OFFERED:
        return list(names)
    first = [names[group.places[0]] for group in group_names(names)]
    return [*first, chosen] if chosen in names and chosen not in first else first


def below(modules: tuple[ModuleRow, ...], name: str) -> tuple[ModuleRow, ...]:
    """A module and all modules inside it."""
    return tuple(m for m in modules if not name or m.name == name or m.name.startswith(f"{name}."))


def module_facts(classes: ModelClasses, module: ModuleRow) -> dict[str, str]:
    """Properties of one module."""
    used = next((each for each in classes.used_classes if each.name == module.class_name), None)
    facts = {"Class": module.class_name}
    if used:
        facts |= {"Defined in": used.module, "Description": used.summary or "no docstring"}
    facts |= {
        "Parameters": f"{module.parameters:,}",
        "Own parameters": f"{module.own_parameters:,}",
        "Runs per pass": "not counted" if module.uses is None else f"{module.uses:,} ×",
    }
    facts |= {key: shape_text(shape) for key, shape in module.shapes.items()}
    return facts | ({"Note": note} if (note := remarks(module)) else {})


def output_rows(fields: tuple[OutputField, ...]) -> str:
    """The fields of the output as a Markdown table."""
    lines = ["| Field | Shape | Contents |", "|---|---|---|"]
    for each in fields:
        name = f"**{literal(each.field)}**" if each.count else literal(each.field)
        holds = f"*{each.kind}, {each.dtype}.* " if each.count else ""
        lines.append(f"| {name} | {_shape(each)} | {holds}{literal(each.note)} |")
    return "\n".join(lines)


def _shape(field: OutputField) -> str:
    """Sizes with what they count: "batch 1 × positions 10"; a size no rule names has none."""
    sizes = field.shape or ()
    axes = field.axes or ("",) * len(sizes)
    named = (
        f"{n:,}" if axis in ("", str(n)) else f"{literal(axis)} **{n:,}**" for axis, n in zip(axes, sizes, strict=True)
    )
    return " × ".join(named) or ("a single number" if field.shape == () else "–")
