"""Which classes the model is made of, and what it returns."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.analyses.classes import frames, words
from inspector.analyses.classes.figures import class_tree
from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.classes.result import ModelClasses
from inspector.analyses.experts.request import ExpertsRequest
from inspector.report.content import Context, Section
from inspector.request import Request
from inspector.text import count_text
from inspector.view.blocks import Block, Branch, Bullets, Code, Facts, Figure, Sentence, Table, Tree
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
            Tab("Every module", lambda: [Table("modules", "Modules", frames.module_frame(classes.modules))]),
            Tab("By class", lambda: [Table("used-classes", "Classes of its modules", frames.used_classes(classes))]),
            Tab("Adds", lambda: _adds(classes)),
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
    seen = ("class", "in_the_file", "note")
    yield Table("siblings", "Result of loading this file as", frames.siblings(classes), seen=seen)
    yield Sentence(words.SIBLINGS)


def _adds(classes: ModelClasses) -> Iterator[Block]:
    for kind, title in (
        ("class", "Classes, starting with the model's own:"),
        ("mixin", "Mixins, with methods and no weights:"),
    ):
        if found := tuple(words.ancestor(each) for each in classes.hierarchy if each.kind == kind):
            yield Sentence(title)
            yield Bullets(found)


def _output(classes: ModelClasses) -> Iterator[Block]:
    output = classes.output
    if output is None:
        return
    yield Sentence(words.returned(output))
    yield Code(output.call, "python")
    yield Table("output", f"Fields of {output.class_name}", frames.output_fields(output.fields))
    yield Sentence(words.SHAPES)
    yield Code(" ".join(output.tokens))


def _asked(context: Context) -> ClassesRequest:
    """The classes, with the output for the report's text."""
    return ClassesRequest(text=context.setting.text)


def _ask(context: Context) -> tuple[Request, ...]:
    """The classes, and of a mixture the experts."""
    return (_asked(context), ExpertsRequest()) if context.overview.experts else (_asked(context),)


SECTION = Section("classes", ask=_ask, query=lambda context: _asked(context).to_query())
