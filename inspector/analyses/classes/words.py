"""Sentences about a model's classes."""

from __future__ import annotations

from collections.abc import Sequence

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
WHOLE = "Loads whole."


def remarks(module: ModuleRow) -> str:
    """What is unusual about a module; "" where nothing is."""
    found = [f"the same module as {module.same_as}"] if module.same_as else []
    found += [f"{key} is also {', '.join(others)}" for key, others in module.shared.items()]
    found += [f"not in the file: {', '.join(module.missing)}"] if module.missing else []
    return "; ".join(found)


def returned(output: ExampleOutput) -> str:
    """What the model returns for the example."""
    return f"It returns {output.class_name} ({output.module}), here for {plural(len(output.tokens), 'token')}:"


def marks(module: ModuleRow, *, reused: bool) -> str:
    """What a line of the tree says of its module, as short as can be."""
    found = [f"the same module as {module.same_as}"] if module.same_as is not None else []
    found += [f"{name} is {others[0]}" for name, others in module.shared.items()]
    found += [f"NOT IN THE FILE: {', '.join(module.missing)}"] if module.missing else []
    found += [f"runs {module.uses} times"] if reused and module.parameters else []
    return "; ".join(found)


def unfit(error: Exception) -> str:
    """Why a class cannot be built from this file."""
    return f"It does not fit: {str(error).partition(': ')[0]}."


def loads_without(names: Sequence[str]) -> str:
    """A base model loads, whatever these tensors are."""
    return f"Loads, but {_random(names)}"


def lacks(names: Sequence[str]) -> str:
    """What the file lacks of a class."""
    return f"T{_random(names)[1:]}"


def _random(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the file lacks {names[0]}: a loader would fill it with random numbers."
    return f"the file lacks {len(names)} tensors, such as {names[0]}: a loader would fill them with random numbers."


def trained_as(model_class: str) -> str:
    """Every name fits a class that the weights were not trained for."""
    return (
        f"Every name fits, but the weights were trained as {model_class}: this class would read them as what they "
        "are not."
    )


def unknown_class(named: str, shown: str, version: str) -> str:
    """config.json names a class that this version of transformers lacks."""
    return (
        f"config.json names the class {named}, which transformers {version} does not have: {shown} is shown in its "
        "place."
    )


def no_output(error: Exception) -> str:
    """Why the example could not be read."""
    return f"There is no output to show: {error}"


def did_not_run(model_class: str, error: Exception) -> str:
    """Why there is no output, though the example was read."""
    return (
        f"{model_class} did not run on this example ({type(error).__name__}), so there is no output to show; its "
        "classes and modules are all here."
    )


def ids_instead(checkpoint: str, last: int) -> str:
    """What the model reads where there is no tokenizer."""
    return f"{checkpoint} brings no tokenizer: the token ids 0 to {last} stand for a text."
