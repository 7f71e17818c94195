"""Sentences about a model's classes."""

from __future__ import annotations

from inspector.analyses.classes.result import ExampleOutput, ModuleRow
from inspector.text import plural

SIBLINGS = (
    "Each class was given this file by the same loader. transformers fills missing weights with random numbers and a "
    "warning; here they stay missing."
)
SHAPES = (
    "Shapes alone: the example runs through the model's own code on tensors that have a shape and no numbers. A second "
    "run with another size shows what each axis counts."
)


def remarks(module: ModuleRow) -> str:
    """What is unusual about a module; "" where nothing is."""
    found = [f"the same module as {module.same_as}"] if module.same_as else []
    found += [f"{key} is also {', '.join(others)}" for key, others in module.shared.items()]
    found += [f"not in the file: {', '.join(module.missing)}"] if module.missing else []
    return "; ".join(found)


def returned(output: ExampleOutput) -> str:
    """What the model returns for the example."""
    return f"It returns {output.class_name} ({output.module}), here for {plural(len(output.tokens), 'token')}:"
