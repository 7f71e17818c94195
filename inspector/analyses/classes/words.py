"""Sentences about a model's classes."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.classes.result import AncestorClass, ExampleOutput, ModelClasses, ModuleRow
from inspector.text import count_text, plural, shape_text

SIBLINGS = (
    "The same loader loads this file into each class. transformers fills missing weights with random numbers and "
    "warns; here they stay missing."
)
SHAPES = (
    "Shapes only: the example runs through the model's own code on tensors that have a shape but no numbers. A second "
    "run with another size shows what each axis counts."
)
# What came of loading the file as a class
WHOLE = "Loads completely."
UNFIT = "It does not fit: {why}."
TRAINED_AS = "Every name fits, but the weights were trained as {model}, so this class would misinterpret them."
# What a reader must know of the answer
UNKNOWN_CLASS = (
    "config.json names the class {named}, which transformers {version} does not have: {model} is shown instead."
)
OTHER_CONFIG = (
    "transformers' Auto classes read this config.json as {given}, as this page does, and {model}.from_pretrained reads "
    "it as {own}: load it with an Auto class, which knows all of its settings."
)
NO_OUTPUT = "There is no output to show: {error}"
DID_NOT_RUN = (
    "{model} did not run on this example, so there is no output to show; its classes and modules are complete."
)
IDS_INSTEAD = "{name} has no tokenizer, so the token ids 0 to {last} are used instead of text."


def headline(classes: ModelClasses) -> str:
    """What the model is, in a sentence."""
    fitting = sum(each.present for each in classes.siblings)
    return (
        f"{classes.model_class}: {plural(len(classes.modules), 'module')} of "
        f"{plural(len(classes.used_classes), 'class', 'classes')}, {count_text(classes.parameters)} parameters; "
        f"{fitting} of {plural(len(classes.siblings), 'class', 'classes')} of its family "
        f"{'finds its' if fitting == 1 else 'find their'} weights in the file."
    )


def ancestor(base: AncestorClass) -> str:
    """What a class, or a mixin, that the model's class is made from is and brings."""
    through = f", through {base.via}" if base.kind == "mixin" and base.via else ""
    adds = ", ".join(base.adds) or "nothing notable"
    return f"{base.name} ({base.module}{through}). {base.summary} Adds {adds}.".replace("  ", " ")


def returns(classes: ModelClasses) -> dict[str, str]:
    """What the model returns for the example, in a line."""
    if classes.output is None:
        return {}
    fields = ", ".join(each.field for each in classes.output.fields if each.returned)
    return {"Returns": f"{classes.output.class_name} with {fields}"}


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


def module_facts(classes: ModelClasses, module: ModuleRow) -> dict[str, str]:
    """What there is to know of one module."""
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
