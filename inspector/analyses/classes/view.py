"""Which classes the model is made of, and what it returns."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from inspector.analyses.classes import words
from inspector.analyses.classes.figures import class_tree
from inspector.analyses.classes.frames import used_classes
from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.classes.result import ModelClasses
from inspector.report.content import Context, Section
from inspector.text import count_text, shape_text
from inspector.view.blocks import Block, Branch, Code, Facts, Figure, Sentence, Table, Tree
from inspector.view.view import Headline, Picture, Tab, View

LEVELS = 3  # of modules that are drawn as text


def view(classes: ModelClasses, request: ClassesRequest, *, name: str) -> View:
    """The family, what each sibling would find in the file, the modules and the output."""
    return View(
        Headline(words.headline(classes)),
        picture=Picture(
            Figure(
                "family",
                lambda theme: class_tree(classes.hierarchy, classes.siblings, name=name, theme=theme),
                "Model classes from torch.nn.Module down",
                narrow=lambda theme: class_tree(
                    classes.hierarchy, classes.siblings, name=name, narrow=True, theme=theme
                ),
            ),
            _tree(classes),
        ),
        beside=(
            Facts(
                {
                    "Class": " ← ".join(each.name for each in classes.hierarchy if each.kind == "class"),
                    "Configuration": classes.config_class,
                    "Modules": f"{len(classes.modules):,}",
                    "Parameters": f"{classes.parameters:,}, each shared tensor once",
                    **words.returns(classes),
                }
            ),
        ),
        more="--json prints every module and class, which classes load the file, and the fields of the output.",
        tabs=(
            Tab("Loads as", lambda: _siblings(classes)),
            Tab("By class", lambda: [Table("used-classes", "Classes of its modules", used_classes(classes))]),
            Tab("Output", lambda: _output(classes)),
        ),
    )


def _tree(classes: ModelClasses) -> Tree:
    """The modules as text, with their classes."""
    lines = [line for line in classes.tree if line.depth <= LEVELS]

    def below(start: int, depth: int) -> Iterator[Branch]:
        for place in range(start, len(lines)):
            if lines[place].depth < depth:
                return
            if lines[place].depth == depth:
                line = lines[place]
                times = f" × {line.count:,}" if line.count > 1 else ""
                label = f"{line.label} ({line.class_name}){times}" if depth else line.class_name
                detail = f"{count_text(line.parameters):>7}" if line.parameters else ""
                yield Branch(label, detail, tuple(below(place + 1, depth + 1)))

    return Tree(tuple(below(0, 0)))


def _siblings(classes: ModelClasses) -> Iterator[Block]:
    yield Sentence(words.SIBLINGS)
    yield Table(
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


def _output(classes: ModelClasses) -> Iterator[Block]:
    output = classes.output
    if output is None:
        return
    yield Sentence(words.returned(output))
    yield Code(output.call)
    yield Sentence(words.SHAPES)
    yield Table(
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


def _asked(context: Context) -> ClassesRequest:
    """The classes, with the output for the report's text."""
    return ClassesRequest(text=context.setting.text)


SECTION = Section("classes", ask=lambda context: (_asked(context),), query=lambda context: _asked(context).to_query())
