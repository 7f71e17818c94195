"""A model's classes, modules and output as tables."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from inspector.analyses.classes.result import ModelClasses, ModuleRow, OutputField
from inspector.analyses.classes.words import remarks
from inspector.analyses.overview.words import HEADS
from inspector.text import shape_text

ROOT = "the model itself"
ANSWERS = {name: title for name, (title, _) in HEADS.items()} | {"base model": "no head"}


def used_classes(classes: ModelClasses) -> pd.DataFrame:
    """One row a class of the modules, most parameters first."""
    return pd.DataFrame(
        {
            "class": each.name,
            "modules": each.modules,
            "own_parameters": each.own_parameters,
            "defined_in": each.module,
            "what_it_is": each.summary,
        }
        for each in classes.used_classes
    )


def siblings(classes: ModelClasses) -> pd.DataFrame:
    """One row a class that could load the file."""
    return pd.DataFrame(
        {
            "class": each.name,
            "head": ANSWERS.get(each.head or "", "own heads"),
            "in_the_file": "present" if each.present else "absent",
            "missing_tensors": each.missing,
            "note": each.note,
        }
        for each in classes.siblings
    )


def module_frame(modules: Iterable[ModuleRow], *, inside: str = "") -> pd.DataFrame:
    """One row a module, named as seen from inside one of them."""
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


def output_fields(fields: Iterable[OutputField]) -> pd.DataFrame:
    """One row a field of the output."""
    return pd.DataFrame(
        {
            "field": each.field,
            "shape": _shape(each),
            "contents": f"{each.kind}, {each.dtype}. {each.note}" if each.count else each.note,
        }
        for each in fields
    )


def _shape(field: OutputField) -> str:
    """Sizes with what they count: "batch 1 × positions 10"; a size no rule names has none."""
    sizes = field.shape or ()
    axes = field.axes or ("",) * len(sizes)
    named = (f"{n:,}" if axis in ("", str(n)) else f"{axis} {n:,}" for axis, n in zip(axes, sizes, strict=True))
    return " × ".join(named) or ("a single number" if field.shape == () else "–")
