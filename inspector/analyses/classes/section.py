"""Which classes the model is made of, and what it returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from inspector.analyses.classes import words
from inspector.analyses.classes.figures import class_tree
from inspector.analyses.classes.frames import used_classes
from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.classes.result import ExampleOutput, ModelClasses
from inspector.report.content import Block, Code, Context, Drawn, Facts, Said, Section, Tabled
from inspector.text import shape_text


def asked(context: Context) -> ClassesRequest:
    """The classes, with the output for the report's text."""
    return ClassesRequest(text=context.setting.text)


def show(context: Context, answers: tuple[Any, ...]) -> Iterator[Block]:
    """The family, what each sibling would find in the file, the modules and the output."""
    classes: ModelClasses = answers[0]
    yield Facts(
        {
            "Class": classes.model_class,
            "Configuration": classes.config_class,
            "Modules": f"{len(classes.modules):,}",
            "Parameters": f"{classes.parameters:,}, each shared tensor once",
        }
    )
    yield Drawn(
        "family",
        lambda theme: class_tree(classes.hierarchy, classes.siblings, name=context.name, theme=theme),
        "Model classes from torch.nn.Module down",
    )
    yield Said(words.SIBLINGS)
    yield Tabled(
        "siblings",
        "Classes that can load it",
        pd.DataFrame(
            {
                "class": each.name,
                "head": (each.head or "another one").replace("_", " "),
                "in_the_file": each.present,
                "missing_tensors": each.missing,
                "note": each.note,
            }
            for each in classes.siblings
        ),
    )
    yield Tabled("used-classes", "Classes of its modules", used_classes(classes))
    if classes.output:
        yield from _output(classes.output)


def _output(output: ExampleOutput) -> Iterator[Block]:
    yield Said(words.returned(output))
    yield Code(output.call)
    yield Said(words.SHAPES)
    yield Tabled(
        "output",
        f"Fields of {output.class_name}",
        pd.DataFrame(
            {
                "field": each.field,
                "returned": each.returned,
                "kind": each.kind,
                "shape": "–" if each.shape is None else shape_text(each.shape),
                "axes": " × ".join(each.axes) or "–",
                "note": each.note,
            }
            for each in output.fields
        ),
    )


SECTION = Section(
    "classes", ask=lambda context: (asked(context),), show=show, query=lambda context: asked(context).to_query()
)
