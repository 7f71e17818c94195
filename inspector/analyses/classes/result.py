"""Which classes a model is made of, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.results.plain import local


@dataclass(frozen=True, slots=True)
class AncestorClass:
    """One base class of the model's class."""

    name: str
    module: str  # where Python finds it, e.g. "transformers.modeling_utils"
    kind: str  # "class": a torch.nn.Module; "mixin": methods only
    via: str | None  # the class that lists it among its bases; None: the model's own class
    summary: str  # first sentence of its docstring; "" without one
    adds: tuple[str, ...]  # the notable members that it defines, e.g. "forward()"


@dataclass(frozen=True, slots=True)
class SiblingClass:
    """A class of the same family that may load this file."""

    name: str
    parent: str  # its base model class
    head: str | None  # one of results.HEADS, "base model", or None: a head of another kind
    present: bool  # the file has its weights, and they were trained for this head
    missing: int  # tensors that the file lacks
    note: str  # one sentence: what would be random, or why it does not fit
    summary: str  # first sentence of its docstring


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One module of the model."""

    name: str  # "" for the model itself
    class_name: str
    parameters: int  # below it, each shared tensor counted once
    own_parameters: int  # of the module itself, without its submodules
    shapes: dict[str, tuple[int, ...]]  # own parameter -> shape
    shared: dict[str, tuple[str, ...]]  # own parameter -> full names of the same tensor elsewhere
    missing: tuple[str, ...]  # own parameters that the file lacks
    uses: int | None  # how often one forward pass of the example runs it; None: not counted
    same_as: str | None  # first name of the module, if it has several names


@dataclass(frozen=True, slots=True)
class UsedClass:
    """A class that modules of the model use."""

    name: str
    module: str
    modules: int  # number of modules, each counted once
    own_parameters: int  # of all of them, each shared tensor counted once
    summary: str


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line of the module tree; identical blocks share one line."""

    name: str  # full name; of the first one where several are folded
    label: str  # last part of the name, "[0–11]" where several are folded
    depth: int  # 0: the model itself
    class_name: str
    count: int  # modules that the line stands for
    parameters: int  # of all of them, each shared tensor counted once
    shapes: str  # own parameters of one of them, "weight 768 × 768, bias 768"
    note: str  # shared, reused or missing; "" for none of these


@dataclass(frozen=True, slots=True)
class OutputField:
    """One field of the model's output."""

    field: str
    returned: bool
    kind: str  # "tensor", "13 tensors", "DynamicCache"; "none"
    count: int  # tensors in it
    shape: tuple[int, ...] | None  # of each tensor; None: nothing returned, or shapes differ
    dtype: str | None
    axes: tuple[str, ...]  # what each axis counts, e.g. ("batch", "positions", "vocab")
    note: str  # how to read it, or how to get it


@dataclass(frozen=True, slots=True)
class ExampleOutput:
    """What the model returns for one example."""

    class_name: str  # the ModelOutput class
    module: str
    tokens: tuple[str, ...]  # what the model read
    call: str  # the call, as Python code
    fields: tuple[OutputField, ...]  # in the class' order


@dataclass(frozen=True, slots=True)
class ModelClasses:
    """The classes of a checkpoint's model: their bases, modules and output."""

    model_class: str
    config_class: str
    parameters: int  # each shared tensor counted once
    hierarchy: tuple[AncestorClass, ...]  # in Python's method resolution order
    siblings: tuple[SiblingClass, ...]  # the model's own class first
    used_classes: tuple[UsedClass, ...]  # by parameters, largest first
    modules: tuple[ModuleRow, ...]  # in the order of named_modules
    output: ExampleOutput | None  # None: the model did not run on the example
    warnings: tuple[str, ...]
    mixtures: int = 0  # blocks whose router chooses among experts; `experts` measures them
    tree: tuple[TreeLine, ...] = local(default=())
    tree_text: str = local(default="")
